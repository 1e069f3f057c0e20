# Fits: in the background, with progress, cancellation and interruption.

"""
    FitProgress(data; matrices, test, valid, init, checkpoint, resume, plan, preset, options, names of options...)

A fit that runs in the background. Iteration waits for epochs and returns a `Progress` for each; if epochs are faster than the
loop, some are left out, but never the last one. `fetch(run)` waits for the model, `cancel(run)` ends the fit after the current
epoch, and `close(run)` ends it without a model. An interrupt (Ctrl-C) while waiting cancels the fit.

```julia
run = FitProgress(ratings; rank=8, test=held_out)
for epoch in run
    println(epoch.epoch, " ", epoch.test_rmse)
end
model = fetch(run)
```
"""
struct FitProgress
    handle::Handle{s3cmtf_fit}
    problem::Problem
    # Arrays that the library refers to.
    arrays::Any
    model::Base.RefValue{Union{Nothing,Model}}
    lock::ReentrantLock
end

# The library allows only one thread at a time to take the model.
use(f, run::FitProgress) = lock(() -> use(f, run.handle), run.lock)

"""
Entries in any form, with rows that are matched with those of `like`, a problem or model, and the names of both; a table has the columns
of `like`. Messages call the entries `what`. All rows of `new_mode` may be new.
"""
function entries_like(data, like, what; new_mode=0)
    tensor = is_table_of_entries(data) ? table_like(data, like) : Tensor(data)
    ndims(tensor) == length(like.modes) ||
        throw(DimensionMismatch("the entries have $(ndims(tensor)) modes; $(length(like.modes)) are needed"))
    columns = AbstractVector[indices(tensor, mode) for mode in 1:ndims(tensor)]
    matched, labels = match_columns(columns, tensor.labels, like, what; new_mode=new_mode)
    return all(matched .=== columns) ? tensor : renumbered(tensor, matched), labels
end

"The entries of a table with the columns of `like`. Numbers are names if the mode has names."
function table_like(data, like)
    table = column_table(data)
    columns, value = columns_like(table, like)
    return Tensor(table; columns=columns, value=value, strings=columns[like.labels.!==nothing])
end

"Row numbers of each mode that are matched with those of `like`, and the names of both."
function match_columns(columns, labels, like, what; new_mode=0)
    source, sizes = like isa Model ? ("the model", size(like)) : ("the tensor", like.sizes)
    known = copy(like.labels)
    matched = map(enumerate(columns)) do (mode, rows)
        used = labels[mode] === nothing || isempty(rows) ? 0 : maximum(rows)
        numbers, known[mode] = match_rows(Rows(source, known[mode], sizes[mode]), Rows(what, labels[mode], used),
            "mode $(like.modes[mode])", mode == new_mode ? nothing : unseen)
        numbers === nothing || isempty(rows) ? rows : numbers[rows]
    end
    return AbstractVector[matched...], known
end

function FitProgress(data; checkpoint=nothing, resume=nothing, plan=nothing, keywords...)
    plan isa Union{Nothing,AbstractString} || throw(ArgumentError("plan is $(summary(plan)); it is a text, such as plan(data) returns"))
    handle, problem, arrays = new_fit(data; resume=resume, keywords...)
    use(handle) do fit
        checkpoint === nothing || s3cmtf_fit_set_checkpoint(fit, checkpoint)
        resume === nothing || s3cmtf_fit_set_resume(fit, resume)
        plan === nothing || s3cmtf_fit_set_plan(fit, plan)
        s3cmtf_fit_start(fit)
    end
    return FitProgress(handle, problem, arrays, Ref{Union{Nothing,Model}}(nothing), ReentrantLock())
end

"Creates a fit that has not begun. Returns its handle, its problem, and the arrays that it refers to."
function new_fit(data; matrices=(), test=nothing, valid=nothing, init=nothing, resume=nothing, preset=nothing, options=nothing,
    keywords...)
    problem = problem_of(data, matrices)
    test === nothing || (test = first(entries_like(test, problem, "test")))
    valid === nothing || (valid = first(entries_like(valid, problem, "valid")))
    init isa Union{Nothing,Model} || throw(ArgumentError("init is $(summary(init)); it is a Model"))
    init === nothing || foreach(check_init, problem.modes, problem.labels, init.labels)
    settings = make_options(keywords; preset=preset, given=options, resume=resume)
    handle = use(problem.handle, settings) do problem, options
        create(output -> s3cmtf_fit_new(problem, options, output), s3cmtf_fit)
    end
    use(handle) do fit
        test === nothing || use(coo -> s3cmtf_fit_set_test(fit, coo), test.handle)
        valid === nothing || use(coo -> s3cmtf_fit_set_valid(fit, coo), valid.handle)
        init === nothing || use(model -> s3cmtf_fit_set_init(fit, model), init.handle)
    end
    return handle, problem, (problem.arrays, test, valid)
end

"""
    plan(data; matrices=[], valid, init, preset, options, names of options...)
    plan(model)

The first form returns what a fit with these arguments would do, and why, as a text of JSON: every option resolved, the matrices, and
for each choice its evidence. Nothing is fitted. The second returns the plan of a model; the text is empty if it has none.
`fit(data; plan=text)` follows a plan. Modes and matrices of a plan count from 1.
"""
function plan(data; keywords...)
    handle, _, arrays = new_fit(data; keywords...)
    text = GC.@preserve arrays use(fit -> (make_plan(fit); read_text((args...) -> s3cmtf_fit_plan(fit, args...))), handle)
    close(handle)
    return text
end
plan(model::Model) = use(pointer -> read_text((args...) -> s3cmtf_model_get_plan(pointer, args...)), model.handle)

const plan_function = Ref{Ptr{Cvoid}}(C_NULL)

"Makes the plan of a fit, which the fit keeps. An interrupt cancels it."
function make_plan(fit::Ptr{s3cmtf_fit})
    error = new_error()
    try
        types = Tuple{Ptr{s3cmtf_fit},Ptr{UInt8},UInt64,Ptr{UInt64},Ptr{s3cmtf_error}}
        arguments = (fit, C_NULL, 0, C_NULL, error)
        status = call_in_thread(() -> s3cmtf_fit_cancel(fit), address(plan_function, :s3cmtf_fit_plan), types, arguments)
        status == S3CMTF_OK || throw_error(status, error)
    finally
        s3cmtf_error_free(error)
    end
end

function check_init(mode, labels, of_init)
    rows, _ = match_rows(Rows("the tensor", labels, 0), Rows("init", of_init, 0), "mode $mode", nothing)
    rows === nothing ||
        throw(ArgumentError("the rows of mode $mode have other numbers in init; create the tensor with `Tensor(table; like=init)`"))
end

"""
    progress(run)

Returns the `Progress` of a fit without waiting.
"""
progress(run::FitProgress) =
    Progress(use(fit -> read_struct(state -> s3cmtf_fit_get_progress(fit, state), s3cmtf_progress), run))

"""
    isrunning(run)

Returns whether the fit has not ended yet.
"""
function isrunning(run::FitProgress)
    running = Ref{Int32}(0)
    use(fit -> s3cmtf_fit_wait(fit, 0.0, running), run)
    return running[] != 0
end

"""
    cancel(run)

Requests the end of a fit. `fetch` then returns the model of the last complete epoch; before the first it throws an `S3CMTFError`.
"""
cancel(run::FitProgress) = use(s3cmtf_fit_cancel, run)

Base.close(run::FitProgress) = close(run.handle)
Base.isopen(run::FitProgress) = isopen(run.handle)

"Waits until the fit has ended or `done()`. An interrupt cancels the fit."
function wait_for(done, run::FitProgress)
    try
        wait_until(() -> done() || !isrunning(run))
    catch failure
        failure isa InterruptException && disable_sigint(() -> cancel(run))
        rethrow()
    end
end

function Base.iterate(run::FitProgress, seen::Int=0)
    wait_for(() -> progress(run).epoch > seen, run)
    if isrunning(run)
        state = progress(run)
        return state, state.epoch
    end
    # After the end, the epochs that were not seen follow from the record of the model.
    past = filter(state -> state.epoch > seen, history(fetch(run)))
    return isempty(past) ? nothing : (first(past), first(past).epoch)
end
Base.IteratorSize(::Type{FitProgress}) = Base.SizeUnknown()
Base.eltype(::Type{FitProgress}) = Progress

"""
    fetch(run)

Waits for the end of a fit and returns its model.
"""
function Base.fetch(run::FitProgress)
    run.model[] === nothing || return run.model[]
    wait_for(() -> false, run)
    lock(run.lock) do
        run.model[] === nothing && (run.model[] = take_model(run))
    end
    return run.model[]
end

function take_model(run::FitProgress)
    handle = use(fit -> create(output -> s3cmtf_fit_take(fit, output), s3cmtf_model), run)
    problem = run.problem
    model = Model(handle, problem.modes, problem.labels, problem.matrix_labels)
    for note in record(model).notes
        occursin(r"^\d+ (warning|rank-lowered|rolled-back) ", note) && @warn split(note, ' '; limit=3)[3]
    end
    return model
end

"""
    fit!(callback, run)

Calls `callback(progress)` for epochs of a fit and returns the model. If the callback returns `true`, the fit is cancelled.
"""
function fit!(callback, run::FitProgress)
    for state in run
        callback(state) === true && isrunning(run) && (cancel(run); break)
    end
    return fetch(run)
end

"""
    fit(data; matrices=[], test, valid, init, checkpoint, resume, plan, preset, options, names of options...)
    fit(callback, data; ...)

Fits a model to a tensor and the matrices coupled to its modes.

- `data`: a `Tensor`, anything that `Tensor` accepts as its only argument, or a `Problem`.
- `matrices`: a list of `CoupledMatrix`, `Graph` or pairs `mode => data`.
- `test`: entries on which the error is measured after every epoch. `valid`: entries that select the best epoch and, with the option
  `patience`, stop the fit.
- `init`: a model to start from. `checkpoint`: a file that is written during the fit. `resume`: a checkpoint to continue; its
  options apply, and only `epochs`, `samples`, `threads`, `pin`, `kernel`, `time_limit` and `checkpoint_every` may be given.
- `plan`: a plan to follow, the text that `plan(data)` or `plan(model)` returns. The model has the same parameters, bit by bit, as
  that of the fit whose plan it is. Data and options must be those of the plan; options that are not given are taken from it.
- Options by name, such as `rank=(8, 8, 4)`, `algorithm=:gibbs` or `biases=false`; `options()` describes them. `preset` is one
  of `presets()`, and `options` a dictionary or text of further options, such as those of a trial of `tune`.
- `callback(progress)` is called for epochs; if it returns `true`, the fit ends.

Warnings of the fit are logged. An interrupt (Ctrl-C) cancels it.
"""
function fit(callback, data; keywords...)
    run = FitProgress(data; keywords...)
    try
        return fit!(callback, run)
    finally
        close(run)
    end
end
fit(data; keywords...) = fit(state -> false, data; keywords...)
