//! A plan as JSON: one object on one line, without loss.

use serde_json::{Map, Value, json};

use super::{
    Choice, DataIdentity, EntriesIdentity, Estimate, FitPlan, MatrixPlan, NoisePlan, StartPlan,
    ValuesPlan,
};
use crate::error::{Error, Result};
use crate::options::{ExternalAlgorithm, Options};
use crate::problem::MatrixKind;

/// Version of the format, the value of the field that a plan begins with.
const FORMAT: u64 = 1;

impl FitPlan {
    /// Returns the plan as JSON on one line, without a line end. Numbers that are not finite are `null`.
    pub fn to_json(&self) -> String {
        let options = FitPlan::stated_options(&self.options).into_iter();
        let options = options.map(|o| (o.name.to_string(), json!(self.options.get(o.name))));
        let matrices = self.matrices.iter().map(|m| {
            json!({"mode": m.mode + 1, "kind": m.kind.to_string(), "weight": m.weight, "penalty": m.penalty})
        });
        let noise = self.noise.as_ref().map(|n| {
            json!({
                "likelihood": if n.is_probit { "probit" } else { "gaussian" },
                "variance_ratio": n.variance_ratio,
                "interval_ratio": n.interval_ratio,
                "biases_only": n.has_biases_only,
                "sweeps": n.sweeps,
                "probit_sweeps": n.probit_sweeps,
            })
        });
        let start = match &self.start {
            StartPlan::Option => json!({"from": "option"}),
            StartPlan::Model { checksum } => json!({"from": "model", "checksum": checksum}),
            StartPlan::Chain { sweeps, rank } => {
                json!({"from": "chain", "sweeps": sweeps, "rank": rank})
            }
        };
        let choices = self.choices.iter().map(|c| {
            let evidence = c.evidence.iter().map(|(name, x)| (name.clone(), json!(x)));
            json!({"question": c.question, "answer": c.answer, "evidence": evidence.collect::<Map<_, _>>()})
        });
        json!({
            "s3cmtf_plan": FORMAT,
            "library": env!("CARGO_PKG_VERSION"),
            "data": {
                "tensor": identity_json(&self.data.tensor),
                "matrices": self.data.matrices.iter().map(identity_json).collect::<Vec<_>>(),
                "valid": self.data.valid.as_ref().map(identity_json),
            },
            "options": options.collect::<Map<_, _>>(),
            "ranks": self.ranks,
            "matrices": matrices.collect::<Vec<_>>(),
            "values": {
                "mean": self.values.mean,
                "scale": self.values.scale,
                "bias_damping": self.values.bias_damping,
                "estimates_damping": self.values.estimates_damping,
            },
            "noise": noise,
            "start": start,
            "estimate": {
                "bytes": self.estimate.bytes,
                "entry_updates": self.estimate.entry_updates,
                "operations": self.estimate.operations,
            },
            "choices": choices.collect::<Vec<_>>(),
        })
        .to_string()
    }

    /// Reads what [`to_json`](Self::to_json) wrote.
    pub fn from_json(text: &str) -> Result<FitPlan> {
        FitPlan::from_json_with(text, &[])
    }

    /// The same for plans in which these algorithms of other crates may be named.
    #[doc(hidden)]
    pub fn from_json_with(
        text: &str,
        algorithms: &'static [&'static ExternalAlgorithm],
    ) -> Result<FitPlan> {
        let value: Value = serde_json::from_str(text.trim())
            .map_err(|e| Error::argument(format!("the plan is not JSON: {e}")))?;
        let plan = Field {
            value: &value,
            name: "plan".into(),
        };
        if plan.field("s3cmtf_plan")?.integer()? != FORMAT {
            let library = plan
                .field("library")
                .and_then(|f| f.text().map(String::from));
            return Err(Error::argument(format!(
                "the plan is of s3cmtf {}, whose plans this version does not read; make a new one with --dry-run",
                library.unwrap_or_else(|_| "another version".into())
            )));
        }
        let data = plan.field("data")?;
        let values = plan.field("values")?;
        let estimate = plan.field("estimate")?;
        Ok(FitPlan {
            data: DataIdentity {
                tensor: data.field("tensor")?.identity()?,
                matrices: data.field("matrices")?.list(Field::identity)?,
                valid: data.field("valid")?.optional(Field::identity)?,
            },
            options: plan.field("options")?.options(algorithms)?,
            ranks: plan.field("ranks")?.list(|f| Ok(f.integer()? as usize))?,
            matrices: plan.field("matrices")?.list(Field::matrix)?,
            values: ValuesPlan {
                mean: values.field("mean")?.number()?,
                scale: values.field("scale")?.number()?,
                bias_damping: values.field("bias_damping")?.list(Field::number)?,
                estimates_damping: values.field("estimates_damping")?.flag()?,
            },
            noise: plan.field("noise")?.optional(Field::noise)?,
            start: plan.field("start")?.start()?,
            estimate: Estimate {
                bytes: estimate.field("bytes")?.number()?,
                entry_updates: estimate.field("entry_updates")?.number()?,
                operations: estimate.field("operations")?.number()?,
            },
            choices: plan.field("choices")?.list(Field::choice)?,
        })
    }
}

fn identity_json(data: &EntriesIdentity) -> Value {
    json!({"dims": data.dims, "entries": data.count, "checksum": data.checksum})
}

/// A value of a plan and where it is, such as `data.tensor.dims`.
struct Field<'a> {
    value: &'a Value,
    name: String,
}

impl<'a> Field<'a> {
    fn wrong(&self, expected: &str) -> Error {
        let found = self.value.to_string();
        let found: String = found.chars().take(40).collect();
        Error::argument(format!("{} must be {expected}, not {found}", self.name))
    }

    fn child(&self, value: &'a Value, name: &str) -> Field<'a> {
        let name = format!("{}.{name}", self.name);
        Field { value, name }
    }

    fn field(&self, name: &str) -> Result<Field<'a>> {
        let object = self
            .value
            .as_object()
            .ok_or_else(|| self.wrong("an object"))?;
        match object.get(name) {
            Some(value) => Ok(self.child(value, name)),
            None => Err(Error::argument(format!("{}.{name} is missing", self.name))),
        }
    }

    fn integer(&self) -> Result<u64> {
        self.value
            .as_u64()
            .ok_or_else(|| self.wrong("an integer, 0 or more"))
    }

    /// Reads a checksum.
    fn checksum(&self) -> Result<u32> {
        let small = u32::try_from(self.integer()?);
        small.map_err(|_| self.wrong("a checksum of 32 bits"))
    }

    /// Reads a number; `null` is not a number.
    fn number(&self) -> Result<f64> {
        match self.value {
            Value::Null => Ok(f64::NAN),
            value => value.as_f64().ok_or_else(|| self.wrong("a number")),
        }
    }

    fn positive(&self) -> Result<f64> {
        let x = self.number()?;
        if x.is_finite() && x > 0.0 {
            Ok(x)
        } else {
            Err(self.wrong("a positive number"))
        }
    }

    fn flag(&self) -> Result<bool> {
        self.value
            .as_bool()
            .ok_or_else(|| self.wrong("true or false"))
    }

    fn text(&self) -> Result<&'a str> {
        self.value.as_str().ok_or_else(|| self.wrong("a string"))
    }

    fn list<T>(&self, read: impl Fn(&Field<'a>) -> Result<T>) -> Result<Vec<T>> {
        let list = self
            .value
            .as_array()
            .ok_or_else(|| self.wrong("an array"))?;
        let items = list.iter().enumerate();
        items
            .map(|(k, value)| read(&self.child(value, &k.to_string())))
            .collect()
    }

    fn optional<T>(&self, read: impl Fn(&Field<'a>) -> Result<T>) -> Result<Option<T>> {
        match self.value {
            Value::Null => Ok(None),
            _ => read(self).map(Some),
        }
    }

    fn identity(&self) -> Result<EntriesIdentity> {
        Ok(EntriesIdentity {
            dims: self.field("dims")?.list(Field::integer)?,
            count: self.field("entries")?.integer()?,
            checksum: self.field("checksum")?.checksum()?,
        })
    }

    fn options(&self, algorithms: &'static [&'static ExternalAlgorithm]) -> Result<Options> {
        let given = self
            .value
            .as_object()
            .ok_or_else(|| self.wrong("an object"))?;
        let mut options = Options::default().with_algorithms(algorithms);
        // It decides which others there are.
        options.set("algorithm", self.field("algorithm")?.text()?)?;
        let stated = FitPlan::stated_options(&options);
        for option in &stated {
            options.set(option.name, self.field(option.name)?.text()?)?;
        }
        for name in given.keys() {
            if !stated.iter().any(|o| o.name == name) {
                return Err(Error::argument(format!(
                    "{}.{name} is not an option of a plan in this version",
                    self.name
                )));
            }
        }
        options.given.clear();
        Ok(options)
    }

    fn matrix(&self) -> Result<MatrixPlan> {
        let kind = self.field("kind")?;
        let found = MatrixKind::from_name(kind.text()?).filter(|kind| *kind != MatrixKind::Auto);
        let mode = self.field("mode")?;
        let weight = self.field("weight")?;
        Ok(MatrixPlan {
            mode: match mode.integer()? {
                0 => return Err(mode.wrong("a mode, counted from 1")),
                n => n as usize - 1,
            },
            kind: found.ok_or_else(|| kind.wrong("observed, graph, full or sampled=K"))?,
            weight: match weight.number()? {
                x if x.is_finite() && x >= 0.0 => x,
                _ => return Err(weight.wrong("a finite number, 0 or more")),
            },
            penalty: self.field("penalty")?.optional(Field::number)?,
        })
    }

    fn noise(&self) -> Result<NoisePlan> {
        let likelihood = self.field("likelihood")?;
        Ok(NoisePlan {
            is_probit: match likelihood.text()? {
                "probit" => true,
                "gaussian" => false,
                _ => return Err(likelihood.wrong("gaussian or probit")),
            },
            variance_ratio: self.field("variance_ratio")?.positive()?,
            interval_ratio: self.field("interval_ratio")?.positive()?,
            has_biases_only: self.field("biases_only")?.flag()?,
            sweeps: self.field("sweeps")?.list(Field::sweeps)?,
            probit_sweeps: self.field("probit_sweeps")?.optional(Field::sweeps)?,
        })
    }

    /// Reads the first and the last number of some sweeps.
    fn sweeps(&self) -> Result<(u64, u64)> {
        match self.list(Field::integer)?[..] {
            [first, last] if 0 < first && first <= last && last < 1 << 32 => Ok((first, last)),
            _ => Err(self.wrong("the first and the last number of sweeps")),
        }
    }

    fn start(&self) -> Result<StartPlan> {
        let from = self.field("from")?;
        Ok(match from.text()? {
            "option" => StartPlan::Option,
            "model" => StartPlan::Model {
                checksum: self.field("checksum")?.checksum()?,
            },
            "chain" => StartPlan::Chain {
                sweeps: self.field("sweeps")?.integer()?,
                rank: self.field("rank")?.integer()? as usize,
            },
            _ => return Err(from.wrong("option, model or chain")),
        })
    }

    fn choice(&self) -> Result<Choice> {
        let evidence = self.field("evidence")?;
        let object = evidence
            .value
            .as_object()
            .ok_or_else(|| evidence.wrong("an object"))?;
        let numbers = object.iter();
        let numbers =
            numbers.map(|(name, x)| Ok((name.clone(), evidence.child(x, name).number()?)));
        Ok(Choice {
            question: self.field("question")?.text()?.into(),
            answer: self.field("answer")?.text()?.into(),
            evidence: numbers.collect::<Result<_>>()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan() -> FitPlan {
        let mut options = Options::default();
        options.set("rank", "3,4,5").unwrap();
        options.eta = Some(0.1 + 0.2);
        options.given.clear();
        let data = EntriesIdentity {
            dims: vec![1 << 31, 3, 4],
            count: 12,
            checksum: u32::MAX,
        };
        FitPlan {
            data: DataIdentity {
                matrices: vec![data.clone()],
                valid: Some(data.clone()),
                tensor: data,
            },
            options,
            ranks: vec![3, 3, 4],
            matrices: vec![MatrixPlan {
                mode: 1,
                kind: MatrixKind::Sampled(3),
                weight: 1.0 / 3.0,
                penalty: Some(1e-300),
            }],
            values: ValuesPlan {
                mean: -0.1,
                scale: 2.0,
                bias_damping: vec![5.5, 1e22],
                estimates_damping: true,
            },
            noise: Some(NoisePlan {
                is_probit: true,
                variance_ratio: 1.7,
                interval_ratio: 1.0,
                has_biases_only: false,
                sweeps: vec![(1, 8), (21, 58)],
                probit_sweeps: Some((71, 94)),
            }),
            start: StartPlan::Chain {
                sweeps: 9,
                rank: 32,
            },
            estimate: Estimate {
                bytes: 1e9,
                entry_updates: 3.0,
                operations: 4.5,
            },
            choices: vec![Choice::new("rank", "3 \"of\" 4".into(), &[("error", 0.5)])],
        }
    }

    #[test]
    fn reading_inverts_writing() {
        let mut expected = plan();
        let text = expected.to_json();
        assert!(!text.contains('\n'));
        assert_eq!(FitPlan::from_json(&text).unwrap(), expected);
        for start in [StartPlan::Option, StartPlan::Model { checksum: 7 }] {
            (expected.start, expected.noise) = (start, None);
            assert_eq!(FitPlan::from_json(&expected.to_json()).unwrap(), expected);
        }
    }

    #[test]
    fn a_wrong_plan_is_named_with_its_place() {
        let text = plan().to_json();
        for (from, to, expected) in [
            ("\"s3cmtf_plan\":1", "\"s3cmtf_plan\":2", "does not read"),
            (
                "\"weight\":0.333",
                "\"weight\":-0.333",
                "plan.matrices.0.weight must be",
            ),
            ("\"mode\":2", "\"mode\":0", "plan.matrices.0.mode"),
            ("sampled=3", "auto", "plan.matrices.0.kind"),
            ("[21,58]", "[58,21]", "plan.noise.sweeps.1"),
            (
                "\"variance_ratio\":1.7",
                "\"variance_ratio\":0",
                "plan.noise.variance_ratio",
            ),
            (
                "\"estimates_damping\":true",
                "\"estimates_damping\":1",
                "true or false",
            ),
            ("\"scale\":2.0,", "", "plan.values.scale is missing"),
            ("\"eta\":", "\"beta\":", "plan.options.eta is missing"),
            (
                "\"eta\":",
                "\"threads\":\"1\",\"eta\":",
                "plan.options.threads is not",
            ),
            ("\"rank\":\"3,4,5\"", "\"rank\":\"0\"", "rank = \"0\""),
        ] {
            assert!(text.contains(from), "{from}");
            let error = FitPlan::from_json(&text.replacen(from, to, 1)).unwrap_err();
            assert!(error.to_string().contains(expected), "{error}");
        }
        for cut in [0, 1, text.len() / 2, text.len() - 1] {
            assert!(FitPlan::from_json(&text[..cut]).is_err(), "cut at {cut}");
        }
    }
}
