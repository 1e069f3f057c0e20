//! The inputs that all sections of a page share, and their evaluation on test entries.

use s3cmtf::Monitor;
use s3cmtf::Result;
use s3cmtf::format::CooView;
use s3cmtf::model::{BiasModel, Model};
use s3cmtf::predict::{Evaluation, evaluate};

use super::html::{escape, truncate};
use super::options::ReportOptions;

/// The longest name, in characters, of a mode, a row and a column.
const MAX_MODE_NAME: usize = 40;
const MAX_ROW_NAME: usize = 80;
const MAX_COLUMN_NAME: usize = 60;

/// The inputs of a page.
pub(super) struct PageContext<'a> {
    pub model: &'a Model,
    pub options: &'a ReportOptions<'a>,
    pub monitor: &'a dyn Monitor,
}

/// Errors on the test entries.
pub(super) struct TestErrors {
    pub model: Evaluation,
    /// The RMSE of predicting the training mean; NaN if the mean is not known.
    pub mean_rmse: f64,
}

impl PageContext<'_> {
    /// Returns the name of a mode, escaped.
    pub(super) fn mode_name(&self, n: usize) -> String {
        match self.options.modes.get(n).filter(|m| !m.is_empty()) {
            Some(name) => escape(&truncate(name, MAX_MODE_NAME)),
            None => format!("mode {}", n + 1),
        }
    }

    /// Returns the name or number of a row, escaped.
    pub(super) fn row_name(&self, mode: usize, row: u32) -> String {
        let name = self.options.names.display_name(mode, row);
        escape(&truncate(&name, MAX_ROW_NAME))
    }

    /// Returns the name or number of a column of a matrix, escaped.
    pub(super) fn column_name(&self, matrix: usize, column: u32) -> String {
        let name = self.options.columns.display_name(matrix, column);
        escape(&truncate(&name, MAX_COLUMN_NAME))
    }

    /// Evaluates the model, and the training mean as a baseline, on the test entries.
    pub(super) fn test_errors(&self, test: &CooView<'_>) -> Result<TestErrors> {
        let (range, threads) = (self.model.range(), self.options.threads);
        let model = evaluate(self.model, test, range, threads, self.monitor)?;
        let mean = match (&self.options.data, self.model.mean()) {
            (Some(data), _) if !data.is_empty() => {
                let values = data.values();
                (0..data.len()).map(|i| values.get(i)).sum::<f64>() / data.len() as f64
            }
            // A mean of 0 means that the fit did not subtract it.
            (_, mean) if mean != 0.0 => mean,
            _ => f64::NAN,
        };
        let mean_rmse = if mean.is_finite() {
            let baseline = BiasModel::new(mean, Vec::new());
            let errors = evaluate(&baseline, test, range, threads, self.monitor)?;
            errors.clipped.rmse
        } else {
            f64::NAN
        };
        Ok(TestErrors { model, mean_rmse })
    }
}
