//! The data of a demo, planted or from a folder of the user.

use s3cmtf::Result;
use s3cmtf::discover::RowNames;
use s3cmtf::format::{CooFile, Names};
use s3cmtf::options::Options;
use s3cmtf::problem::MatrixKind;

/// A coupled matrix whose columns are attributes of the rows of a mode, such as categories.
pub(super) struct AttributeMatrix {
    pub file: CooFile,
    /// What the columns are, such as `category`.
    pub attribute: String,
    pub mode: usize,
    pub kind: MatrixKind,
    pub column_names: Option<Names>,
}

/// The tensor and matrices of a demo, with names.
pub(super) struct DataSet {
    pub train: CooFile,
    pub test: CooFile,
    pub matrices: Vec<AttributeMatrix>,
    /// What the rows of each mode are, such as `person`.
    pub mode_names: Vec<String>,
    /// Names of the rows of each mode.
    pub names: Vec<Option<Names>>,
    /// Options of the fits.
    pub fit_options: Options,
    /// Test RMSE of the planted model, if the data is planted.
    pub planted_rmse: Option<f64>,
}

impl DataSet {
    /// Returns the names of rows by mode.
    pub(super) fn row_names(&self) -> Result<RowNames> {
        let mut names = RowNames::new(self.mode_names.len());
        for (n, mode_names) in self.names.iter().enumerate() {
            if let Some(mode_names) = mode_names {
                names.set(n, mode_names.clone())?;
            }
        }
        Ok(names)
    }

    /// Returns the names of columns by matrix.
    pub(super) fn column_names(&self) -> Result<RowNames> {
        let mut names = RowNames::new(self.matrices.len());
        for (m, matrix) in self.matrices.iter().enumerate() {
            if let Some(columns) = &matrix.column_names {
                names.set(m, columns.clone())?;
            }
        }
        Ok(names)
    }

    /// Returns the matrices of a mode with their numbers.
    pub(super) fn matrices_of(
        &self,
        mode: usize,
    ) -> impl Iterator<Item = (usize, &AttributeMatrix)> {
        let numbered = self.matrices.iter().enumerate();
        numbered.filter(move |(_, m)| m.mode == mode)
    }

    /// Returns the attributes of each row of a mode: the names of the columns in which it has positive entries.
    pub(super) fn attributes(&self, mode: usize) -> Result<Vec<Vec<String>>> {
        let names = self.column_names()?;
        let mut labels = vec![Vec::new(); self.train.header().dims[mode] as usize];
        for (m, matrix) in self.matrices_of(mode) {
            let view = matrix.file.view();
            for (i, (&row, &column)) in view.column(0).iter().zip(view.column(1)).enumerate() {
                if view.values().get(i) > 0.0
                    && let Some(row_labels) = labels.get_mut(row as usize)
                {
                    row_labels.push(names.display_name(m, column));
                }
            }
        }
        Ok(labels)
    }
}
