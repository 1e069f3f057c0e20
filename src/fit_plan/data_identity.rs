//! Which data a plan is for.

use crate::error::{Error, Result};
use crate::format::CooView;
use crate::problem::Problem;
use crate::progress::{Monitor, check_cancelled};

/// Number of entries that are copied at a time.
const CHUNK: usize = 1 << 9;

/// The data of a fit: sizes and checksums.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DataIdentity {
    /// The tensor.
    pub tensor: EntriesIdentity,
    /// The matrices, in the order of the problem.
    pub matrices: Vec<EntriesIdentity>,
    /// The validation entries, if the caller gives some.
    pub valid: Option<EntriesIdentity>,
}

/// The entries of a tensor or matrix: sizes and a checksum.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EntriesIdentity {
    /// Sizes of the modes.
    pub dims: Vec<u64>,
    /// Number of entries.
    pub count: u64,
    /// CRC-32 of indices, values and weights.
    pub checksum: u32,
}

impl DataIdentity {
    /// Reads all entries.
    pub(crate) fn of(
        problem: &Problem<'_>,
        valid: Option<&CooView<'_>>,
        monitor: &dyn Monitor,
    ) -> Result<DataIdentity> {
        let of = |view: &CooView<'_>| EntriesIdentity::of(view, monitor);
        let matrices = problem.matrices().iter();
        Ok(DataIdentity {
            tensor: of(problem.tensor().view())?,
            matrices: matrices
                .map(|m| of(m.entries.view()))
                .collect::<Result<_>>()?,
            valid: valid.map(of).transpose()?,
        })
    }

    /// Returns an error that names what differs if a plan is for other data than this.
    pub(crate) fn check_plan(&self, planned: &DataIdentity) -> Result<()> {
        let count = |what: &str, here: usize, there: usize| {
            Error::argument(format!("the plan is for {there} {what}; there are {here}"))
        };
        self.tensor.check_plan("tensor", &planned.tensor)?;
        if self.matrices.len() != planned.matrices.len() {
            let (here, there) = (self.matrices.len(), planned.matrices.len());
            return Err(count("matrices and graphs", here, there));
        }
        for (m, (here, there)) in self.matrices.iter().zip(&planned.matrices).enumerate() {
            here.check_plan(&format!("matrix {}", m + 1), there)?;
        }
        match (&self.valid, &planned.valid) {
            (None, None) => Ok(()),
            (Some(here), Some(there)) => here.check_plan("file of validation entries", there),
            (here, there) => {
                let number = |x: &Option<EntriesIdentity>| usize::from(x.is_some());
                Err(count(
                    "files of validation entries",
                    number(here),
                    number(there),
                ))
            }
        }
    }
}

impl EntriesIdentity {
    fn of(view: &CooView<'_>, monitor: &dyn Monitor) -> Result<EntriesIdentity> {
        let mut crc = crc32fast::Hasher::new();
        let mut bytes = [0; 8 * CHUNK];
        for n in 0..view.order() {
            for piece in view.column(n).chunks(CHUNK) {
                check_cancelled(monitor)?;
                for (to, i) in bytes.chunks_exact_mut(4).zip(piece) {
                    to.copy_from_slice(&i.to_le_bytes());
                }
                crc.update(&bytes[..4 * piece.len()]);
            }
        }
        for values in [view.values()].into_iter().chain(view.weights()) {
            for start in (0..values.len()).step_by(CHUNK) {
                check_cancelled(monitor)?;
                let end = (start + CHUNK).min(values.len());
                for (to, i) in bytes.chunks_exact_mut(8).zip(start..end) {
                    to.copy_from_slice(&values.get(i).to_le_bytes());
                }
                crc.update(&bytes[..8 * (end - start)]);
            }
        }
        Ok(EntriesIdentity {
            dims: view.dims().to_vec(),
            count: view.len() as u64,
            checksum: crc.finalize(),
        })
    }

    fn check_plan(&self, what: &str, planned: &EntriesIdentity) -> Result<()> {
        let shape = |x: &EntriesIdentity| {
            let dims: Vec<String> = x.dims.iter().map(u64::to_string).collect();
            format!("{} with {} entries", dims.join(" x "), x.count)
        };
        if (&self.dims, self.count) != (&planned.dims, planned.count) {
            return Err(Error::argument(format!(
                "the plan is for other data: its {what} is {}, this one is {}",
                shape(planned),
                shape(self)
            )));
        }
        if self.checksum != planned.checksum {
            return Err(Error::argument(format!(
                "the plan is for other data: its {what} has the same sizes, but other entries (checksum {:08x}, here {:08x})",
                planned.checksum, self.checksum
            )));
        }
        Ok(())
    }
}
