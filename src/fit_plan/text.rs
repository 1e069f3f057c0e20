//! A plan for people.

use std::fmt::{self, Display, Formatter};

use super::{FitPlan, StartPlan};

impl Display for FitPlan {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let o = &self.options;
        let name = |option: &str| o.get(option).unwrap_or_default();
        let list = |numbers: &[usize]| {
            let numbers: Vec<String> = numbers.iter().map(usize::to_string).collect();
            numbers.join(" x ")
        };
        let tensor = &self.data.tensor;
        let dims: Vec<String> = tensor.dims.iter().map(u64::to_string).collect();
        let dims = dims.join(" x ");
        writeln!(
            f,
            "data: {dims}, {} entries, checksum {:08x}",
            tensor.count, tensor.checksum
        )?;
        writeln!(f, "model: {}, ranks {}", name("model"), list(&self.ranks))?;
        writeln!(f, "algorithm: {}, {} epochs", name("algorithm"), o.epochs)?;
        for (m, matrix) in self.matrices.iter().enumerate() {
            let (number, mode) = (m + 1, matrix.mode + 1);
            match matrix.weight {
                0.0 => writeln!(f, "matrix {number}: of mode {mode}, not used")?,
                weight => writeln!(
                    f,
                    "matrix {number}: of mode {mode}, {}, weight {weight}",
                    matrix.kind
                )?,
            }
        }
        let values = &self.values;
        write!(
            f,
            "values: minus {:.6}, divided by {}",
            values.mean, values.scale
        )?;
        match &values.bias_damping[..] {
            [] => writeln!(f)?,
            damping => {
                let damping: Vec<String> = damping.iter().map(|x| format!("{x:.3}")).collect();
                writeln!(f, ", biases with a penalty of {}", damping.join(", "))?;
            }
        }
        if let Some(noise) = &self.noise {
            match (noise.is_probit, noise.has_biases_only) {
                (true, _) => writeln!(f, "noise: probit")?,
                (_, true) => writeln!(f, "noise: too large for factors, biases alone predict")?,
                _ => writeln!(
                    f,
                    "noise: {:.2} times the variance of the residuals",
                    noise.variance_ratio
                )?,
            }
        }
        match self.start {
            StartPlan::Option => writeln!(f, "start: {}", name("start"))?,
            StartPlan::Model { .. } => writeln!(f, "start: the given model")?,
            StartPlan::Chain { sweeps, rank } => {
                writeln!(
                    f,
                    "start: sample {sweeps} of a Gibbs chain with {rank} components"
                )?;
            }
        }
        let estimate = &self.estimate;
        writeln!(
            f,
            "estimate: {:.0} MiB, {:.3e} updates of an entry, {:.3e} operations",
            estimate.bytes / f64::from(1 << 20),
            estimate.entry_updates,
            estimate.operations
        )?;
        for choice in &self.choices {
            writeln!(f, "choice: {}: {}", choice.question, choice.answer)?;
        }
        let options = FitPlan::stated_options(o);
        let options: Vec<String> = options
            .iter()
            .map(|o| format!("{}={}", o.name, name(o.name)))
            .collect();
        writeln!(f, "options: {}", options.join(" "))
    }
}
