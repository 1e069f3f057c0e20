//! The table of epochs that `fit` prints.

use std::time::{Duration, Instant};

use s3cmtf::model::EpochMetrics;

use crate::output::{format_integer, format_number, format_rmse};

/// Limits how often a line is printed.
pub(crate) struct LineLimit {
    interval: Duration,
    last: Option<Instant>,
}

impl LineLimit {
    /// Ten lines per second on a terminal, else one.
    pub(crate) fn new(is_terminal: bool) -> Self {
        LineLimit {
            interval: Duration::from_millis(if is_terminal { 100 } else { 1000 }),
            last: None,
        }
    }

    /// Returns whether a line may be printed now, and counts it as printed if so.
    pub(crate) fn allows_line(&mut self) -> bool {
        if self.last.is_some_and(|t| t.elapsed() < self.interval) {
            return false;
        }
        self.last = Some(Instant::now());
        true
    }
}

/// The columns that not every fit has.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Columns {
    /// The learning rate.
    pub eta: bool,
    /// The validation error.
    pub valid: bool,
    /// The test error.
    pub test: bool,
}

/// Formats epochs as rows of a table: the first, the last, and between them as many as [`LineLimit`] allows.
pub(crate) struct EpochTable {
    columns: Columns,
    limit: LineLimit,
    has_heading: bool,
    /// The newest row, if it was not printed.
    held_back: Option<String>,
    best_valid: f64,
}

impl EpochTable {
    pub(crate) fn new(columns: Columns, is_terminal: bool) -> Self {
        EpochTable {
            columns,
            limit: LineLimit::new(is_terminal),
            has_heading: false,
            held_back: None,
            best_valid: f64::INFINITY,
        }
    }

    /// Returns the heading the first time, then `None`.
    pub(crate) fn heading(&mut self) -> Option<String> {
        if std::mem::replace(&mut self.has_heading, true) {
            return None;
        }
        let mut line = format!("{:>5}", "epoch");
        if self.columns.eta {
            line += &format!("  {:>10}", "eta");
        }
        line += &format!("  {:>10}", "train RMSE");
        if self.columns.valid {
            line += &format!("  {:>11}", "valid RMSE ");
        }
        if self.columns.test {
            line += &format!("  {:>10}", "test RMSE");
        }
        Some(line + &format!("  {:>8}  {:>12}", "seconds", "entries/s"))
    }

    /// Returns the row of an epoch, or holds it back until [`EpochTable::last_row`].
    pub(crate) fn row(&mut self, e: &EpochMetrics) -> Option<String> {
        let row = self.format(e);
        if self.limit.allows_line() {
            self.held_back = None;
            Some(row)
        } else {
            self.held_back = Some(row);
            None
        }
    }

    /// Returns the newest row if it was held back.
    pub(crate) fn last_row(&mut self) -> Option<String> {
        self.held_back.take()
    }

    fn format(&mut self, e: &EpochMetrics) -> String {
        let rmse = |x: f64| {
            if x.is_nan() {
                "-".to_string()
            } else {
                format_rmse(x)
            }
        };
        let mut line = format!("{:>5}", e.epoch);
        if self.columns.eta {
            line += &format!("  {:>10}", format_number(e.eta));
        }
        line += &format!("  {:>10}", rmse(e.train_rmse));
        if self.columns.valid {
            // A star marks the best validation error so far.
            let is_best = e.valid_rmse < self.best_valid;
            if is_best {
                self.best_valid = e.valid_rmse;
            }
            let mark = if is_best { "*" } else { " " };
            line += &format!("  {:>10}{mark}", rmse(e.valid_rmse));
        }
        if self.columns.test {
            line += &format!("  {:>10}", rmse(e.test_rmse));
        }
        let speed = format_integer(e.entries_per_second as u64);
        line + &format!("  {:>8.2}  {speed:>12}", e.update_seconds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_have_the_columns_of_the_heading() {
        let all = Columns {
            eta: true,
            valid: true,
            test: true,
        };
        let mut table = EpochTable::new(all, false);
        let heading = table.heading().unwrap();
        assert_eq!(table.heading(), None);
        let mut metrics = EpochMetrics {
            epoch: 1,
            eta: 0.05,
            train_rmse: 0.9,
            valid_rmse: 0.95,
            test_rmse: f64::NAN,
            update_seconds: 0.5,
            entries_per_second: 1234567.0,
            loss: 1.0,
            eval_seconds: 0.1,
        };
        let row = table.row(&metrics).unwrap();
        assert_eq!(row.chars().count(), heading.chars().count());
        assert_eq!(
            row,
            "    1        0.05      0.9000      0.9500*           -      0.50     1,234,567"
        );
        // Within a second of the first row: held back, and replaced by newer rows.
        metrics.epoch = 2;
        assert_eq!(table.row(&metrics), None);
        metrics.epoch = 3;
        assert_eq!(table.row(&metrics), None);
        let last = table.last_row().unwrap();
        assert!(last.starts_with("    3") && !last.contains('*'), "{last}");
        assert_eq!(table.last_row(), None);
        let mut bare = EpochTable::new(Columns::default(), true);
        let heading = bare.heading().unwrap();
        assert!(!heading.contains("valid") && !heading.contains("eta"));
        let row = bare.row(&metrics).unwrap();
        assert_eq!(row.chars().count(), heading.chars().count());
    }
}
