//! When a fit is saved on the way, and how.

use std::time::Instant;

use super::super::observer::{Event, Observer};
use super::Fit;
use crate::error::Result;
use crate::model::save_checkpoint;

impl Fit<'_> {
    pub(super) fn checkpoint_due(&self, epoch: u64) -> bool {
        let seconds = self.options.checkpoint_seconds;
        self.input.checkpoint.is_some()
            && if seconds > 0.0 {
                self.saved_at.elapsed().as_secs_f64() >= seconds || epoch == self.last_epoch(epoch)
            } else {
                epoch.is_multiple_of(self.options.checkpoint_every)
                    || epoch == self.last_epoch(epoch)
            }
    }

    pub(super) fn save_checkpoint(&mut self, observer: &mut dyn Observer) -> Result<()> {
        let input = self.input;
        let Some(path) = &input.checkpoint else {
            return Ok(());
        };
        self.model.options = self.options.clone();
        let state = self.progress.to_text();
        // Scales are powers of two: nothing changes on the way out and back.
        self.scale(true)?;
        let saved = save_checkpoint(&self.model, path, &state, self.best.as_ref());
        self.scale(false)?;
        saved?;
        (self.saved_epoch, self.saved_at) = (self.progress.epoch, Instant::now());
        observer.event(&Event::Checkpoint {
            epoch: self.progress.epoch,
        });
        Ok(())
    }

    /// A fit that ends early can be resumed from where it ended.
    pub(super) fn last_checkpoint(&mut self, observer: &mut dyn Observer) -> Result<()> {
        if self.progress.epoch > self.saved_epoch && self.model.is_finite() {
            self.save_checkpoint(observer)?;
        }
        Ok(())
    }
}
