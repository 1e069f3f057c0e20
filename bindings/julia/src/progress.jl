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

Progress(state::s3cmtf_progress) = from_struct(Progress, state; stop_reason=word(stop_reasons, state.stop_reason))
