//! Checkpoints: when they are written, and what they contain.
//!
//! A checkpoint that cannot be written is a warning: the result of the fit does not depend on it.

use super::fit::Fit;
use crate::error::{Error, Result};
use crate::model::{Checkpoint, Model, save_checkpoint};
use crate::solver::observer::{Event, Observer};
use crate::solver::standardization::ValueUnits;
use crate::trace::{self, SpanKind};
use crate::try_alloc::try_concat;

impl Fit<'_> {
    /// Returns whether a checkpoint is due after `epoch`.
    pub(super) fn is_checkpoint_due(&self, epoch: u64) -> bool {
        self.input.checkpoint.is_some()
            && (epoch.is_multiple_of(self.context.options.checkpoint_every)
                || epoch == self.last_epoch(epoch))
    }

    /// Writes the checkpoint, if the input names a file.
    pub(super) fn save_checkpoint(&mut self, observer: &mut dyn Observer) -> Result<()> {
        let input = self.input;
        let Some(path) = &input.checkpoint else {
            return Ok(());
        };
        let _span = trace::span(SpanKind::Checkpoint);
        self.model.update_mean_rows()?;
        self.model.options = self.context.options.clone();
        let state = self.progress.to_text();
        // Scales are powers of two, so the parameters are the same afterwards.
        self.convert_to(ValueUnits::Data)?;
        let vectors = self.algorithm.vectors(self.progress.epoch);
        let saved = save_checkpoint(&self.model, path, &state, self.best.as_ref(), &vectors);
        drop(vectors);
        self.convert_to(ValueUnits::Standardized)?;
        let epoch = self.progress.epoch;
        match saved {
            Ok(()) => {
                self.checkpoints.written = epoch;
                observer.event(&Event::Checkpoint { epoch });
            }
            Err(error) => self.record_failed_checkpoint(&error, observer),
        }
        Ok(())
    }

    /// Counts a checkpoint that could not be written, and warns of the first.
    fn record_failed_checkpoint(&mut self, error: &Error, observer: &mut dyn Observer) {
        let epoch = self.progress.epoch;
        let checkpoints = &mut self.checkpoints;
        // The last epoch is tried twice.
        checkpoints.failed += u64::from(checkpoints.last_failed != Some(epoch));
        if checkpoints.last_failed.replace(epoch).is_none() {
            let event = Event::Warning(format!(
                "the checkpoint of epoch {epoch} could not be written, and the fit goes on without it: {error}"
            ));
            event.record(&mut self.model.record, epoch);
            observer.event(&event);
        }
    }

    /// Writes a checkpoint of the last epoch, so that a fit that ended early can be resumed there.
    pub(in crate::solver) fn save_last_checkpoint(
        &mut self,
        observer: &mut dyn Observer,
    ) -> Result<()> {
        if self.progress.epoch > self.checkpoints.written && self.model.is_finite() {
            self.save_checkpoint(observer)?;
        }
        Ok(())
    }

    /// Returns the fit as a checkpoint would contain it, but without the best model.
    pub(in crate::solver) fn into_checkpoint(mut self) -> Result<(Model, Checkpoint)> {
        self.best = None;
        self.model.update_mean_rows()?;
        self.convert_to(ValueUnits::Data)?;
        let vectors = self.algorithm.vectors(self.progress.epoch).into_iter();
        let vectors = vectors.map(|parts| try_concat(&parts, "parameters"));
        let saved = Checkpoint {
            state: self.progress.to_text(),
            options: self.context.options.to_text(),
            library: None,
            best: None,
            vectors: vectors.collect::<Result<_>>()?,
        };
        Ok((self.model, saved))
    }
}
