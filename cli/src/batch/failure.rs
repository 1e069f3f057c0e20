//! Failures of jobs, as recorded in their results.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use s3cmtf::{Error, ErrorKind};

use super::job_result::{JobResult, JobStatus};

/// The failure of a job.
pub(super) struct JobFailure {
    pub status: JobStatus,
    pub reason: &'static str,
    pub message: String,
}

impl JobFailure {
    pub(super) fn new(reason: &'static str, message: String) -> JobFailure {
        JobFailure {
            status: JobStatus::Failed,
            reason,
            message,
        }
    }

    /// Writes the failure into the result of the job.
    pub(super) fn record(self, result: &mut JobResult) {
        result.status = self.status;
        result.reason = self.reason.into();
        result.message = self.message;
    }
}

impl From<Error> for JobFailure {
    fn from(error: Error) -> JobFailure {
        let (status, reason) = match error.kind() {
            ErrorKind::BadInput => (JobStatus::Failed, "bad-input"),
            ErrorKind::System => (JobStatus::Failed, "system"),
            ErrorKind::Cancelled => (JobStatus::Interrupted, "cancelled"),
        };
        JobFailure {
            status,
            reason,
            message: error.to_string(),
        }
    }
}

/// Returns the message of a panic.
fn panic_message(panic: &(dyn Any + Send)) -> &str {
    panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message")
}

/// Calls a function. A panic becomes a failure of the job and does not end the batch.
pub(super) fn catch_panic<T>(work: impl FnOnce() -> T) -> Result<T, JobFailure> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|panic: Box<dyn Any + Send>| {
        let message = panic_message(&*panic);
        JobFailure::new(
            "panic",
            format!("internal error, please report it: {message}"),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_fails_only_its_job() {
        let failure = catch_panic(|| panic!("in a job")).err().unwrap();
        let mut result = JobResult::new("a", 1);
        failure.record(&mut result);
        assert_eq!(
            (result.status, &result.reason[..]),
            (JobStatus::Failed, "panic")
        );
        assert!(result.message.contains("in a job"), "{}", result.message);
        assert!(catch_panic(|| 1).is_ok_and(|n| n == 1));
    }
}
