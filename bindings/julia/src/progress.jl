# The state of a fit.

const stop_reasons = (none=S3CMTF_STOP_NONE, epochs=S3CMTF_STOP_EPOCHS, tolerance=S3CMTF_STOP_TOLERANCE,
    patience=S3CMTF_STOP_PATIENCE, time_limit=S3CMTF_STOP_TIME_LIMIT, cancelled=S3CMTF_STOP_CANCELLED)

"""
The state of a fit after an epoch. Quantities that were not measured are `NaN`. `stop_reason` is `:none` before the end.
"""
struct Progress
    epoch::Int
    epochs::Int
    eta::Float64
    loss::Float64
    train_rmse::Float64
    test_rmse::Float64
    valid_rmse::Float64
    update_seconds::Float64
    eval_seconds::Float64
    entries_per_second::Float64
    rollbacks::Int
    stop_reason::Symbol
end

Progress(p::s3cmtf_progress) = Progress(p.epoch, p.epochs, p.eta, p.loss, p.train_rmse, p.test_rmse, p.valid_rmse,
    p.update_seconds, p.eval_seconds, p.entries_per_second, p.rollbacks, word(stop_reasons, p.stop_reason))
