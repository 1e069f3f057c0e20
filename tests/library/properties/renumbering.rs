//! Renumbering of the modes, rows and matrix columns of problems and models.

use std::path::Path;

use s3cmtf::format::OpenMode;
use s3cmtf::kernel::{CoreKind, CoreShape};
use s3cmtf::model::{self, Model};

use super::Entries;
use super::fits::{Matrix, RandomProblem};
use crate::common::forged_model::ForgedModel;

/// New numbers of modes, rows and matrix columns.
#[derive(Debug, Clone)]
pub(super) struct Renumbering {
    /// The old mode of each new one.
    pub(super) modes: Vec<usize>,
    /// For each old mode, the new index of each row.
    pub(super) rows: Vec<Vec<u32>>,
    /// For each matrix, the new index of each column.
    pub(super) columns: Vec<Vec<u32>>,
}

impl Renumbering {
    fn new_mode(&self, old: usize) -> usize {
        self.modes.iter().position(|&n| n == old).unwrap()
    }

    /// Returns the new position of a cell. Indices that no row has stay.
    pub(super) fn cell(&self, old: &[u32]) -> Vec<u32> {
        let index = |&n: &usize| self.rows[n].get(old[n] as usize).copied();
        self.modes
            .iter()
            .map(|n| index(n).unwrap_or(old[*n]))
            .collect()
    }

    pub(super) fn problem(&self, old: &RandomProblem) -> RandomProblem {
        let renumbered =
            |column: &[u32], numbers: &[u32]| column.iter().map(|&i| numbers[i as usize]).collect();
        let columns = self
            .modes
            .iter()
            .map(|&n| renumbered(&old.tensor.columns[n], &self.rows[n]));
        let matrix = |(matrix, columns): (&Matrix, &Vec<u32>)| {
            let both = &matrix.entries.columns;
            let columns = vec![
                renumbered(&both[0], &self.rows[matrix.mode]),
                renumbered(&both[1], columns),
            ];
            Matrix {
                mode: self.new_mode(matrix.mode),
                entries: Entries {
                    columns,
                    ..matrix.entries.clone()
                },
                ..matrix.clone()
            }
        };
        RandomProblem {
            tensor: Entries {
                dims: self.modes.iter().map(|&n| old.tensor.dims[n]).collect(),
                columns: columns.collect(),
                ..old.tensor.clone()
            },
            matrices: old.matrices.iter().zip(&self.columns).map(matrix).collect(),
        }
    }

    /// Returns the model with its parameters in their new places, by way of a file.
    pub(super) fn model(&self, old: &Model, folder: &Path) -> Model {
        let path = folder.join("renumbered.s3m");
        model::save(old, &path).unwrap();
        let mut file = ForgedModel::read(&path);
        let old_sections = std::mem::take(&mut file.sections);
        for (name, bytes) in old_sections {
            let (owner, kind) = name.split_once('.').unwrap_or((&name, ""));
            let number = |prefix: &str| owner.strip_prefix(prefix)?.parse::<usize>().ok();
            let section = if let Some(n) = number("mode") {
                let mode = &old.modes()[n];
                let bytes = permuted(
                    bytes,
                    kind,
                    &mode.rows.indices().collect::<Vec<_>>(),
                    &self.rows[n],
                    mode.factor.stride(),
                );
                (format!("mode{}.{kind}", self.new_mode(n)), bytes)
            } else if let Some(m) = number("matrix") {
                let matrix = &old.matrices()[m];
                let columns: Vec<u32> = matrix.columns.indices().collect();
                (
                    name.clone(),
                    permuted(
                        bytes,
                        kind,
                        &columns,
                        &self.columns[m],
                        matrix.factor.stride(),
                    ),
                )
            } else {
                match name.as_str() {
                    "core" => (name, self.core(old)),
                    "meta" => (name, self.meta(old, &String::from_utf8(bytes).unwrap())),
                    _ => (name, bytes),
                }
            };
            file.sections.push(section);
        }
        file.write(&path);
        model::load(&path, OpenMode::Private).unwrap()
    }

    /// Returns the section `core` of the permuted core.
    fn core(&self, old: &Model) -> Vec<u8> {
        let shape = old.shape();
        let core = match shape.kind() {
            CoreKind::Diagonal => old.core().to_vec(),
            CoreKind::Full => {
                let old_ranks = shape.ranks();
                let ranks: Vec<usize> = self.modes.iter().map(|&n| old_ranks[n]).collect();
                let dense = shape.dense_core(old.core()).unwrap();
                let mut permuted = vec![0.0; dense.len()];
                for (at, &g) in dense.iter().enumerate() {
                    let mut rest = at;
                    let mut index = vec![0; ranks.len()];
                    for n in (0..ranks.len()).rev() {
                        (index[n], rest) = (rest % old_ranks[n], rest / old_ranks[n]);
                    }
                    let modes = self.modes.iter().zip(&ranks);
                    permuted[modes.fold(0, |to, (&n, rank)| to * rank + index[n])] = g;
                }
                CoreShape::new(CoreKind::Full, &ranks)
                    .padded_core(&permuted)
                    .unwrap()
            }
        };
        core.iter().flat_map(|g| g.to_le_bytes()).collect()
    }

    /// Returns the section `meta` with permuted sizes, ranks and modes of matrices.
    fn meta(&self, old: &Model, text: &str) -> Vec<u8> {
        let (dims, ranks) = (old.dims(), old.shape().ranks());
        let list = |number: &dyn Fn(usize) -> String| {
            self.modes
                .iter()
                .map(|&n| number(n))
                .collect::<Vec<_>>()
                .join(",")
        };
        let mut lines = String::new();
        for line in text.lines() {
            let (key, value) = line.split_once('=').unwrap();
            let is_matrix = key
                .strip_prefix("matrix")
                .is_some_and(|m| m.parse::<usize>().is_ok());
            let value = match key {
                "dims" => list(&|n| dims[n].to_string()),
                "ranks" => list(&|n| ranks[n].to_string()),
                _ if is_matrix => {
                    let (mode, rest) = value.split_once(',').unwrap();
                    format!("{},{rest}", self.new_mode(mode.parse().unwrap()))
                }
                _ => value.to_string(),
            };
            lines += &format!("{key}={value}\n");
        }
        lines.into_bytes()
    }
}

/// Returns a section of a mode or matrix whose rows `indices` get the indices of `numbers`. `stride` is the number of floats
/// of a factor row.
fn permuted(
    bytes: Vec<u8>,
    kind: &str,
    indices: &[u32],
    numbers: &[u32],
    stride: usize,
) -> Vec<u8> {
    let mut rows: Vec<(u32, usize)> = indices
        .iter()
        .map(|&i| numbers[i as usize])
        .zip(0..)
        .collect();
    rows.sort();
    let len = match kind {
        "indices" => {
            return rows
                .iter()
                .flat_map(|(index, _)| index.to_le_bytes())
                .collect();
        }
        "rows" => 4 * stride,
        "counts" | "weights" => 8,
        "biases" | "offsets" => 4,
        // The prior of all rows.
        _ => return bytes,
    };
    // The mean row or bias comes last.
    let moved = rows.iter().flat_map(|&(_, old)| &bytes[old * len..][..len]);
    moved.chain(&bytes[rows.len() * len..]).copied().collect()
}
