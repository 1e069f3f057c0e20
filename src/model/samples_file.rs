//! Posterior samples as sections of a model file.
//!
//! Section `samples` has lines `key=value`; the others hold one array each with the values of all samples, one sample
//! after the other. The line `probit` is there for two-valued data only, the sections `samples.cold*` with matrices only.
//! Checkpoints lack `samples.noise_*`.

use std::collections::HashMap;
use std::sync::Arc;

use super::factor_model::Model;
use super::noise_factors::NoiseFactors;
use super::posterior_samples::{PosteriorSample, PosteriorSamples, ProbitLink, UnseenRows};
use super::quantized_rows::QuantizedRows;
use super::section_file::{SectionFile, SectionWriter, values_by_key};
use crate::error::{Error, Result};
use crate::try_alloc::try_to_vec;

/// Adds the sections of the samples.
pub(super) fn add_samples(writer: &mut SectionWriter<'_>, samples: &PosteriorSamples) {
    let mut meta = format!(
        "count={}\nmean={:016x}\nscale={:016x}\nbiased={}\nsmooth={}\nnoise_ratio={:016x}\n",
        samples.len(),
        samples.mean.to_bits(),
        samples.scale.to_bits(),
        samples.has_biases,
        samples.conditional_mode,
        samples.noise_ratio.to_bits()
    );
    if let Some(link) = &samples.link {
        let numbers = [link.low, link.high, link.threshold, link.deviation];
        let digits = numbers.map(|x| format!("{:016x}", x.to_bits()));
        meta += &format!("probit={}\n", digits.join(","));
    }
    writer.add("samples", meta.into_bytes());
    let noise: Vec<f64> = samples.iter().map(|s| s.noise_deviation).collect();
    writer.add_copied("samples.noise", &noise);
    let mut cores: Vec<f32> = Vec::new();
    samples
        .iter()
        .for_each(|s| cores.extend_from_slice(&s.core));
    writer.add_copied("samples.core", &cores);
    let mut add_rows = |name: String, rows: &mut dyn Iterator<Item = &QuantizedRows>| {
        let (mut scales, mut quantized) = (Vec::new(), Vec::new());
        for r in rows {
            scales.extend_from_slice(&r.scales);
            quantized.extend_from_slice(&r.quantized);
        }
        writer.add_copied(format!("{name}.scales"), &scales);
        writer.add_copied(format!("{name}.digits"), &quantized);
    };
    for n in 0..samples.biases.len() {
        let rows = &mut samples.iter().map(|s| &s.modes[n]);
        add_rows(format!("samples.mode{n}"), rows);
    }
    let rows = &mut samples.iter().map(|s| &s.conditional_means);
    add_rows("samples.smooth".into(), rows);
    let matrices = samples.iter().map(|s| s.columns.len().min(s.weights.len()));
    let matrices = matrices.min().unwrap_or(0);
    for m in 0..matrices {
        let rows = &mut samples.iter().map(|s| &s.columns[m]);
        add_rows(format!("samples.matrix{m}"), rows);
    }
    let mut weights: Vec<f64> = Vec::new();
    samples
        .iter()
        .for_each(|s| weights.extend_from_slice(&s.weights[..matrices]));
    writer.add_copied("samples.weights", &weights);
    let cold = samples.iter().map(|s| s.cold_bias.len()).min().unwrap_or(0);
    for n in 0..cold {
        let parts: Vec<&[f32]> = samples.iter().map(|s| &s.cold_bias[n][..]).collect();
        let is_common = parts.iter().all(|p| p.len() == parts[0].len());
        let cold = if is_common {
            parts.concat()
        } else {
            Vec::new()
        };
        writer.add_copied(format!("samples.cold{n}"), &cold);
    }
    let unseen = samples.iter().map(|s| s.unseen_rows.len());
    for n in 0..unseen.min().unwrap_or(0) {
        let parts: Vec<&[f32]> = samples
            .iter()
            .map(|s| s.unseen_rows[n].as_slice())
            .collect();
        writer.add_copied(format!("samples.unseen{n}"), &parts.concat());
    }
    let factors = &samples.noise_factors;
    let levels: Vec<f32> = factors.levels.iter().flat_map(|&(x, f)| [x, f]).collect();
    if !factors.rows.is_empty() {
        writer.add_copied("samples.noise_levels", &levels);
    }
    for (n, factors) in factors.rows.iter().enumerate() {
        writer.add_copied(format!("samples.noise_rows{n}"), factors);
    }
    for (n, biases) in samples.biases.iter().enumerate() {
        writer.add_copied(format!("samples.biases{n}"), biases);
    }
}

/// Reads the samples of a model that is otherwise complete; `None` if the file has no samples.
pub(super) fn read_samples(file: &SectionFile, model: &Model) -> Result<Option<PosteriorSamples>> {
    if file.range("samples").is_none() {
        return Ok(None);
    }
    let meta = Meta {
        file,
        values: values_by_key(file.text("samples")?),
    };
    let count: usize = meta.parse("count")?;
    let has_biases: bool = meta.parse("biased")?;
    let conditional_mode: usize = meta.parse("smooth")?;
    if conditional_mode >= model.order() {
        return Err(meta.invalid("smooth"));
    }
    let noise = file.values::<f64>("samples.noise")?;
    let cores = file.values::<f32>("samples.core")?;
    let core_len = if cores.is_empty() {
        0
    } else {
        model.core.len()
    };
    if noise.len() != count || cores.len() != count * core_len {
        return Err(meta.invalid("count"));
    }
    let read_mode_rows = |name: &str, n: usize| {
        let row_len = model.shape.ranks()[n] + usize::from(has_biases);
        meta.read_rows(name, count, model.modes[n].rows.len() + 1, row_len)
    };
    let mut columns = Vec::new();
    // Before the first sample a checkpoint has no sections of matrices and of rows without entries.
    let (matrices, order) = match count {
        0 => (&[][..], 0),
        _ => (&model.matrices[..], model.order()),
    };
    for (m, matrix) in matrices.iter().enumerate() {
        let name = format!("samples.matrix{m}");
        let (rows, rank) = (matrix.factor.len(), matrix.factor.rank());
        columns.push(meta.read_rows(&name, count, rows, rank)?.into_iter());
    }
    let weights: &[f64] = file.values("samples.weights")?;
    if weights.len() != count * columns.len() {
        return Err(meta.invalid("weights"));
    }
    let mut cold: Vec<&[f32]> = Vec::new();
    for n in 0..order {
        let name = format!("samples.cold{n}");
        let values: &[f32] = match file.range(&name) {
            Some(_) => file.values(&name)?,
            None => &[],
        };
        if !values.is_empty() && values.len() != count * (model.shape.ranks()[n] + 2) {
            return Err(meta.invalid(&name));
        }
        cold.push(values);
    }
    let mut unseen: Vec<(usize, &[f32])> = Vec::new();
    for n in 0..order {
        let name = format!("samples.unseen{n}");
        let size = model.shape.ranks()[n] + usize::from(has_biases);
        let columns: &[f32] = file.values(&name)?;
        if UnseenRows::columns_len(size).checked_mul(count) != Some(columns.len()) {
            return Err(meta.invalid(&name));
        }
        unseen.push((size, columns));
    }
    let mut modes = Vec::new();
    let mut biases = Vec::new();
    for n in 0..model.order() {
        modes.push(read_mode_rows(&format!("samples.mode{n}"), n)?.into_iter());
        let current = file.values::<f32>(&format!("samples.biases{n}"))?;
        if current.len() != usize::from(has_biases) * (model.modes[n].rows.len() + 1) {
            return Err(meta.invalid("biases"));
        }
        biases.push(try_to_vec(current, "rows")?);
    }
    let mut noise_factors = NoiseFactors::default();
    if file.range("samples.noise_levels").is_some() {
        let levels = file.values::<f32>("samples.noise_levels")?;
        let (levels, []) = levels.as_chunks::<2>() else {
            return Err(meta.invalid("noise_levels"));
        };
        noise_factors.levels = levels.iter().map(|&[x, f]| (x, f)).collect();
        for (n, mode) in model.modes.iter().enumerate() {
            let factors = file.values::<f32>(&format!("samples.noise_rows{n}"))?;
            if factors.len() != mode.rows.len() {
                return Err(meta.invalid("noise_rows"));
            }
            noise_factors.rows.push(try_to_vec(factors, "rows")?);
        }
    }
    let conditional_means = read_mode_rows("samples.smooth", conditional_mode)?;
    let matrices = columns.len();
    let samples = noise.iter().zip(conditional_means).enumerate();
    let samples = samples.map(|(k, (&noise_deviation, conditional_means))| {
        Arc::new(PosteriorSample {
            noise_deviation,
            core: cores[k * core_len..(k + 1) * core_len].to_vec(),
            modes: modes.iter_mut().filter_map(Iterator::next).collect(),
            conditional_means,
            columns: columns.iter_mut().filter_map(Iterator::next).collect(),
            weights: weights[k * matrices..(k + 1) * matrices].to_vec(),
            cold_bias: cold
                .iter()
                .map(|c| c[k * (c.len() / count)..(k + 1) * (c.len() / count)].to_vec())
                .collect(),
            unseen_rows: unseen
                .iter()
                .filter_map(|&(size, columns)| {
                    let len = UnseenRows::columns_len(size);
                    UnseenRows::new(size, columns[k * len..(k + 1) * len].to_vec())
                })
                .collect(),
        })
    });
    Ok(Some(PosteriorSamples {
        mean: meta.float_bits("mean")?,
        scale: meta.float_bits("scale")?,
        has_biases,
        conditional_mode,
        noise_ratio: meta.float_bits("noise_ratio")?,
        samples: samples.collect(),
        noise_factors,
        link: meta.link()?,
        biases,
    }))
}

/// The lines `key=value` of section `samples`.
struct Meta<'a> {
    file: &'a SectionFile,
    values: HashMap<&'a str, &'a str>,
}

impl Meta<'_> {
    fn invalid(&self, key: &str) -> Error {
        self.file
            .invalid(&format!("'{key}' of the samples has an invalid value"))
    }

    fn find(&self, key: &str) -> Result<&str> {
        self.values.get(key).copied().ok_or_else(|| {
            self.file
                .invalid(&format!("'{key}' of the samples is missing"))
        })
    }

    fn parse<T: std::str::FromStr>(&self, key: &str) -> Result<T> {
        self.find(key)?.parse().map_err(|_| self.invalid(key))
    }

    /// Reads a float that is written as its bits in hexadecimal digits.
    fn float_bits(&self, key: &str) -> Result<f64> {
        self.bits(key, self.find(key)?)
    }

    fn bits(&self, key: &str, digits: &str) -> Result<f64> {
        let bits = u64::from_str_radix(digits, 16).map_err(|_| self.invalid(key))?;
        Ok(f64::from_bits(bits))
    }

    /// Reads the link to two values, if there is one.
    fn link(&self) -> Result<Option<ProbitLink>> {
        const KEY: &str = "probit";
        let Some(text) = self.values.get(KEY) else {
            return Ok(None);
        };
        let numbers = text.split(',').map(|digits| self.bits(KEY, digits));
        let numbers: Vec<f64> = numbers.collect::<Result<_>>()?;
        let [low, high, threshold, deviation] = numbers[..] else {
            return Err(self.invalid(KEY));
        };
        Ok(Some(ProbitLink {
            low,
            high,
            threshold,
            deviation,
        }))
    }

    /// Reads `rows` rows of `row_len` values for each of `count` samples.
    fn read_rows(
        &self,
        name: &str,
        count: usize,
        rows: usize,
        row_len: usize,
    ) -> Result<Vec<QuantizedRows>> {
        let scales = self.file.values::<f32>(&format!("{name}.scales"))?;
        let quantized = self.file.values::<i16>(&format!("{name}.digits"))?;
        let expected = rows
            .checked_mul(count)
            .zip(row_len.checked_mul(rows * count));
        if expected != Some((scales.len(), quantized.len())) {
            return Err(self.invalid(name));
        }
        (0..count)
            .map(|k| {
                let values = &quantized[k * rows * row_len..(k + 1) * rows * row_len];
                Ok(QuantizedRows {
                    row_len,
                    scales: try_to_vec(&scales[k * rows..(k + 1) * rows], "rows")?,
                    quantized: try_to_vec(values, "rows")?,
                })
            })
            .collect()
    }
}
