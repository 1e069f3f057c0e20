//! PosteriorSamples of a model: what `gibbs` draws, kept small. Predictions are averaged over them.

use std::sync::Arc;

use super::container::{Container, Opened};
use super::factors::Model;
use crate::error::Result;
use crate::try_alloc::try_to_vec;

/// Rows of one sample: whole numbers of 16 bits, and for each row what they are multiplied with. That
/// is half the size of floats, and exact to a share of 1/65534 of the largest number of a row.
#[derive(Clone, Default)]
pub struct QuantizedRows {
    numbers: usize,
    scales: Vec<f32>,
    digits: Vec<i16>,
}

impl QuantizedRows {
    /// Rows of `numbers` each, one after the other, rounded.
    pub(crate) fn quantize(numbers: usize, rows: &[f32]) -> QuantizedRows {
        const MOST: f32 = i16::MAX as f32;
        let mut scales = Vec::with_capacity(rows.len() / numbers.max(1));
        let mut digits = Vec::with_capacity(rows.len());
        for row in rows.chunks_exact(numbers) {
            let largest = row.iter().fold(0.0f32, |m, x| m.max(x.abs()));
            let scale = largest / MOST;
            // Of rows next to 0 nothing is left.
            let by = if scale.is_normal() { 1.0 / scale } else { 0.0 };
            scales.push(if by > 0.0 { scale } else { 0.0 });
            digits.extend(
                row.iter()
                    .map(|x| (x * by).round().clamp(-MOST, MOST) as i16),
            );
        }
        QuantizedRows {
            numbers,
            scales,
            digits,
        }
    }

    /// Rows of others, each of the same numbers.
    pub(crate) fn gather<'r>(
        rows: impl Iterator<Item = (&'r QuantizedRows, usize)>,
    ) -> QuantizedRows {
        let mut all = QuantizedRows::default();
        for (from, i) in rows {
            all.numbers = from.numbers;
            all.scales.push(from.scales[i]);
            let digits = &from.digits[i * from.numbers..(i + 1) * from.numbers];
            all.digits.extend_from_slice(digits);
        }
        all
    }

    /// The number of rows.
    pub fn len(&self) -> usize {
        self.scales.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.scales.is_empty()
    }

    /// Writes the first numbers of a row to `out`.
    ///
    /// # Panics
    /// If there is no such row, or it is shorter.
    #[inline]
    pub fn read_row(&self, row: usize, out: &mut [f32]) {
        let (scale, from) = (self.scales[row], &self.digits[row * self.numbers..]);
        out.iter_mut()
            .zip(&from[..self.numbers])
            .for_each(|(o, &d)| *o = f32::from(d) * scale);
    }

    /// The last number of a row: its bias, where rows have one.
    #[inline]
    pub fn last_value(&self, row: usize) -> f32 {
        f32::from(self.digits[(row + 1) * self.numbers - 1]) * self.scales[row]
    }
}

/// One sample.
#[derive(Clone)]
pub struct PosteriorSample {
    /// The deviation of the noise.
    pub noise_deviation: f64,
    /// The core, laid out as that of the model; empty if it is the model's.
    pub core: Vec<f32>,
    /// For each mode its rows as drawn, and behind them their mean by entries. With biases, a row has
    /// one more number than its rank.
    pub modes: Vec<QuantizedRows>,
    /// For one mode, the means of the distributions that its rows were drawn from: predictions made of
    /// them scatter less around the same mean.
    pub conditional_means: QuantizedRows,
    /// For each matrix the rows of its columns; none of a graph. Empty in models of earlier versions.
    pub(crate) columns: Vec<QuantizedRows>,
    /// What squared errors of each matrix counted. Empty in models of earlier versions.
    pub(crate) weights: Vec<f64>,
    /// For each mode the bias of a row without tensor entries: what the row that its matrices give is
    /// multiplied with, what is added, and the deviation around that. Empty without matrices.
    pub(crate) cold_bias: Vec<Vec<f32>>,
}

/// All samples of a model.
#[derive(Clone)]
pub struct PosteriorSamples {
    /// What predictions of a sample are raised by: the mean of the training values.
    pub(crate) mean: f64,
    /// What biases are multiplied with.
    pub(crate) scale: f64,
    /// Whether rows have biases.
    pub(crate) has_biases: bool,
    /// The mode with smooth rows.
    pub(crate) conditional_mode: usize,
    /// The samples. Shared, because a checkpoint may be written while more are drawn.
    pub(crate) samples: Vec<Arc<PosteriorSample>>,
    /// The biases of the draw that the rows of the model are, which a resumed fit needs.
    pub(crate) biases: Vec<Vec<f32>>,
}

impl PosteriorSamples {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.samples.len()
    }

    /// Whether there are none yet.
    pub fn is_empty(&self) -> bool {
        self.samples.is_empty()
    }

    /// The samples.
    pub fn iter(&self) -> impl Iterator<Item = &PosteriorSample> {
        self.samples.iter().map(|s| &**s)
    }

    /// What predictions of a sample are raised by.
    pub fn mean(&self) -> f64 {
        self.mean
    }

    /// What biases are multiplied with: samples are of values of deviation 1 or so.
    pub fn scale(&self) -> f64 {
        self.scale
    }

    /// Whether rows have a bias as their last number.
    pub fn has_biases(&self) -> bool {
        self.has_biases
    }

    /// The mode with smooth rows.
    pub fn conditional_mode(&self) -> usize {
        self.conditional_mode
    }

    pub(super) fn is_finite(&self) -> bool {
        let rows = |r: &QuantizedRows| r.scales.iter().all(|s| s.is_finite());
        self.mean.is_finite()
            && self.scale.is_finite()
            && self.biases.iter().flatten().all(|b| b.is_finite())
            && self.iter().all(|s| {
                s.noise_deviation.is_finite()
                    && s.core.iter().all(|g| g.is_finite())
                    && s.modes.iter().chain([&s.conditional_means]).all(rows)
                    && s.columns.iter().all(rows)
                    && s.weights.iter().all(|w| w.is_finite())
                    && s.cold_bias.iter().flatten().all(|x| x.is_finite())
            })
    }

    /// Adds the sections that hold the samples.
    pub(super) fn write(&self, c: &mut Container<'_>) {
        let meta = format!(
            "count={}\nmean={:016x}\nscale={:016x}\nbiased={}\nsmooth={}\n",
            self.len(),
            self.mean.to_bits(),
            self.scale.to_bits(),
            self.has_biases,
            self.conditional_mode
        );
        c.add("samples", meta.into_bytes());
        let noise: Vec<f64> = self.iter().map(|s| s.noise_deviation).collect();
        c.add("samples.noise", bytemuck::cast_slice(&noise).to_vec());
        let cores: Vec<f32> = self.iter().flat_map(|s| &s.core).copied().collect();
        c.add("samples.core", bytemuck::cast_slice(&cores).to_vec());
        let mut add = |name: String, rows: &mut dyn Iterator<Item = &QuantizedRows>| {
            let (mut scales, mut digits) = (Vec::new(), Vec::new());
            for r in rows {
                scales.extend_from_slice(&r.scales);
                digits.extend_from_slice(&r.digits);
            }
            c.add(
                format!("{name}.scales"),
                bytemuck::cast_slice(&scales).to_vec(),
            );
            c.add(
                format!("{name}.digits"),
                bytemuck::cast_slice(&digits).to_vec(),
            );
        };
        for n in 0..self.biases.len() {
            add(
                format!("samples.mode{n}"),
                &mut self.iter().map(|s| &s.modes[n]),
            );
        }
        add(
            "samples.conditional_mode".into(),
            &mut self.iter().map(|s| &s.conditional_means),
        );
        let matrices = self.samples.first().map_or(0, |s| s.columns.len());
        for m in 0..matrices {
            add(
                format!("samples.matrix{m}"),
                &mut self.iter().map(|s| &s.columns[m]),
            );
        }
        let weights: Vec<f64> = self.iter().flat_map(|s| &s.weights).copied().collect();
        c.add("samples.weights", bytemuck::cast_slice(&weights).to_vec());
        for n in 0..self.samples.first().map_or(0, |s| s.cold_bias.len()) {
            let cold: Vec<f32> = self.iter().flat_map(|s| &s.cold_bias[n]).copied().collect();
            c.add(
                format!("samples.cold_bias{n}"),
                bytemuck::cast_slice(&cold).to_vec(),
            );
        }
        for (n, biases) in self.biases.iter().enumerate() {
            c.add(
                format!("samples.biases{n}"),
                bytemuck::cast_slice(biases).to_vec(),
            );
        }
    }

    /// Reads them back, for a model that is otherwise complete; `None` if there are none.
    pub(super) fn read(file: &Opened, model: &Model) -> Result<Option<PosteriorSamples>> {
        if file.range("samples").is_none() {
            return Ok(None);
        }
        let meta = file.text("samples")?;
        let find = |key: &str| {
            meta.lines()
                .find_map(|l| l.strip_prefix(key)?.strip_prefix('='))
                .ok_or_else(|| file.wrong(&format!("'{key}' of the samples is missing")))
        };
        let bad = |key: &str| file.wrong(&format!("'{key}' of the samples makes no sense"));
        let count: usize = find("count")?.parse().map_err(|_| bad("count"))?;
        let bits = |key: &str| {
            let bits = u64::from_str_radix(find(key)?, 16).map_err(|_| bad(key))?;
            Ok(f64::from_bits(bits))
        };
        let biased: bool = find("biased")?.parse().map_err(|_| bad("biased"))?;
        let smooth: usize = find("smooth")?.parse().map_err(|_| bad("smooth"))?;
        if smooth >= model.order() {
            return Err(bad("smooth"));
        }
        let noise = file.numbers::<f64>("samples.noise")?;
        let cores = file.numbers::<f32>("samples.core")?;
        let core = if cores.is_empty() {
            0
        } else {
            model.core.len()
        };
        if noise.len() != count || cores.len() != count * core {
            return Err(bad("count"));
        }
        let read = |name: &str, rows: usize, numbers: usize| -> Result<Vec<QuantizedRows>> {
            let scales = file.numbers::<f32>(&format!("{name}.scales"))?;
            let digits = file.numbers::<i16>(&format!("{name}.digits"))?;
            let whole = rows
                .checked_mul(count)
                .zip(numbers.checked_mul(rows * count));
            if whole != Some((scales.len(), digits.len())) {
                return Err(bad(name));
            }
            (0..count)
                .map(|k| {
                    Ok(QuantizedRows {
                        numbers,
                        scales: try_to_vec(&scales[k * rows..(k + 1) * rows], "rows")?,
                        digits: try_to_vec(
                            &digits[k * rows * numbers..(k + 1) * rows * numbers],
                            "rows",
                        )?,
                    })
                })
                .collect()
        };
        let rows = |name: &str, n: usize| {
            let numbers = model.shape.ranks[n] + usize::from(biased);
            read(name, model.modes[n].rows.len() + 1, numbers)
        };
        // What earlier versions did not keep.
        let kept = file.range("samples.weights").is_some();
        let (mut columns, mut weights) = (Vec::new(), &[][..]);
        let mut cold = vec![&[][..]; if kept { model.order() } else { 0 }];
        if kept {
            for (m, matrix) in model.matrices.iter().enumerate() {
                let name = format!("samples.matrix{m}");
                if file.range(&format!("{name}.scales")).is_none() {
                    break;
                }
                let (count, rank) = (matrix.factor.len(), matrix.factor.rank());
                columns.push(read(&name, count, rank)?.into_iter());
            }
            weights = file.numbers::<f64>("samples.weights")?;
            if weights.len() != count * columns.len() {
                return Err(bad("weights"));
            }
            for (n, cold) in cold.iter_mut().enumerate() {
                let name = format!("samples.cold_bias{n}");
                if file.range(&name).is_some() {
                    *cold = file.numbers::<f32>(&name)?;
                }
                if !cold.is_empty() && cold.len() != count * (model.shape.ranks[n] + 2) {
                    return Err(bad(&name));
                }
            }
        }
        let mut modes = Vec::new();
        let mut biases = Vec::new();
        for n in 0..model.order() {
            modes.push(rows(&format!("samples.mode{n}"), n)?.into_iter());
            let now = file.numbers::<f32>(&format!("samples.biases{n}"))?;
            if now.len() != usize::from(biased) * (model.modes[n].rows.len() + 1) {
                return Err(bad("biases"));
            }
            biases.push(try_to_vec(now, "rows")?);
        }
        let smooth_rows = rows("samples.conditional_mode", smooth)?;
        let columns_len = columns.len();
        let samples = noise
            .iter()
            .zip(smooth_rows)
            .enumerate()
            .map(|(k, (&noise, smooth))| {
                Arc::new(PosteriorSample {
                    noise_deviation: noise,
                    core: cores[k * core..(k + 1) * core].to_vec(),
                    modes: modes.iter_mut().filter_map(Iterator::next).collect(),
                    conditional_means: smooth,
                    columns: columns.iter_mut().filter_map(Iterator::next).collect(),
                    weights: weights[k * columns_len..(k + 1) * columns_len].to_vec(),
                    cold_bias: cold
                        .iter()
                        .map(|c| c[k * (c.len() / count)..(k + 1) * (c.len() / count)].to_vec())
                        .collect(),
                })
            });
        let samples = PosteriorSamples {
            mean: bits("mean")?,
            scale: bits("scale")?,
            has_biases: biased,
            conditional_mode: smooth,
            samples: samples.collect(),
            biases,
        };
        Ok(Some(samples))
    }
}

impl Model {
    /// Gives a model of samples the mean and the biases of the draw that its rows are, as models without samples
    /// have theirs.
    pub(crate) fn apply_sample_biases(&mut self) {
        let Some(samples) = &self.samples else {
            return;
        };
        self.mean = samples.mean;
        for (mode, biases) in self.modes.iter_mut().zip(&samples.biases) {
            let outside = biases.iter().map(|&b| f64::from(b) * samples.scale);
            mode.biases = outside.map(|b| b as f32).collect();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_come_back_as_they_were_but_for_rounding() {
        let rows = [
            1.0f32, -2.0, 0.25, 0.0, 0.0, 0.0, 1e-30, -3e-30, 2e-30, 1e30, 5e29, -1e28,
        ];
        let kept = QuantizedRows::quantize(3, &rows);
        assert_eq!(kept.len(), 4);
        let mut out = [0.0f32; 3];
        for (i, row) in rows.chunks(3).enumerate() {
            kept.read_row(i, &mut out);
            let largest = row.iter().fold(0.0f32, |m, x| m.max(x.abs()));
            for (a, b) in out.iter().zip(row) {
                assert!((a - b).abs() <= largest / 65_000.0, "{row:?} {out:?}");
            }
            assert_eq!(kept.last_value(i), out[2]);
        }
    }
}
