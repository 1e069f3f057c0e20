# Hyperparameter search.

"""
A trial of a search: its `number` (0 has the given options), the `rungs` and `epochs` it reached, `valid_rmse` (`NaN` if it failed),
`seconds`, the `error` or `nothing`, and its `options` as texts. `fit(data; options=trial.options)` fits a model with them.
"""
struct Trial
    number::Int
    rungs::Int
    epochs::Int
    valid_rmse::Float64
    seconds::Float64
    error::Union{Nothing,String}
    options::Dict{Symbol,String}
end

"The trials of a search, the best first."
struct Trials <: AbstractVector{Trial}
    trials::Vector{Trial}
end
Base.size(trials::Trials) = size(trials.trials)
Base.getindex(trials::Trials, i::Int) = trials.trials[i]

optional_text(text::Cstring) = text == C_NULL ? nothing : unsafe_string(text)

"What the callback of the library needs: the function of the caller, and the exception that it threw."
mutable struct TrialObserver
    callback::Any
    failure::Any
end

# An exception must not pass through the frames of the library: it ends the search and is thrown after it. Interrupts are enabled
# only where they are caught.
function on_trial(trial::Ptr{s3cmtf_trial}, user::Ptr{Cvoid})::Int32
    observer = unsafe_pointer_to_objref(user)::TrialObserver
    try
        state = named_tuple(unsafe_load(trial))
        state = merge(state, (error=optional_text(state.error),))
        return Base.reenable_sigint(() -> observer.callback(state)) === true ? 1 : 0
    catch failure
        observer.failure = failure
        return 1
    end
end

"""
    tune(data; matrices=[], trials=200, rungs=3, valid=nothing, valid_fraction=0.1, ranges=(), fit_threads=1, checkpoint, resume,
        preset, options, names of options...)
    tune(callback, data; ...)

Searches for options by random search with successive halving. Trials are compared on validation entries, `valid` or a fraction of
the tensor. `ranges` has the values from which options are sampled: vectors such as `rank=[8, 16, 32]`, or texts for intervals
such as `eta="0.005..0.1"`. Other arguments are those of `fit`.

`callback(trial)` is called after every fit of a trial; if it returns `true`, the search ends with the trials so far. An interrupt
(Ctrl-C) ends it after the current fit of a trial. Returns the trials, the best first.
"""
function tune(callback, data; matrices=(), trials=200, rungs=3, valid=nothing, valid_fraction=0.1, ranges=(), fit_threads=1,
    checkpoint=nothing, resume=nothing, preset=nothing, options=nothing, keywords...)
    trials >= 1 || throw(ArgumentError("trials is $trials; a search has at least 1"))
    rungs >= 1 || throw(ArgumentError("rungs is $rungs; a search has at least 1"))
    valid !== nothing || 0 < valid_fraction < 1 || throw(ArgumentError("valid_fraction is $valid_fraction; it is above 0 and below 1"))
    problem = problem_of(data, matrices)
    valid === nothing || (valid = first(entries_like(valid, problem, "valid")))
    settings = make_options(keywords; preset=preset, given=options)
    handles = valid === nothing ? () : (valid.handle,)
    handle = use(problem.handle, settings, handles...) do problem_pointer, options_pointer, coo...
        request = Ref(c_struct(s3cmtf_tune_request; trials=trials, rungs=rungs, fit_threads=fit_threads,
            valid_fraction=valid_fraction, valid=isempty(coo) ? C_NULL : coo[1]))
        create(output -> s3cmtf_tune_new(problem_pointer, options_pointer, request, output), s3cmtf_tune)
    end
    observer = TrialObserver(callback, nothing)
    result = use(handle) do search
        for (name, range) in pairs(ranges)
            s3cmtf_tune_set_range(search, string(name), option_text(range))
        end
        checkpoint === nothing || s3cmtf_tune_set_checkpoint(search, checkpoint)
        resume === nothing || s3cmtf_tune_set_resume(search, resume)
        GC.@preserve observer problem valid begin
            s3cmtf_tune_set_callback(search, @cfunction(on_trial, Int32, (Ptr{s3cmtf_trial}, Ptr{Cvoid})),
                pointer_from_objref(observer))
            try
                disable_sigint(() -> s3cmtf_tune_run(search))
            catch
                observer.failure === nothing && rethrow()
            end
            observer.failure === nothing || throw(observer.failure)
        end
        read_trials(search)
    end
    close(handle)
    return result
end
tune(data; keywords...) = tune(trial -> false, data; keywords...)

function read_trials(search)
    count = Ref{UInt64}(0)
    s3cmtf_tune_get_count(search, count)
    trials = map(0:Int(count[])-1) do place
        trial = read_struct(output -> s3cmtf_tune_get_trial(search, place, output), s3cmtf_trial)
        options = create(output -> s3cmtf_tune_get_options(search, place, output), s3cmtf_options)
        from_struct(Trial, trial; error=optional_text(trial.error), options=option_values(options))
    end
    # Of a search that was ended early, only trials with a result.
    return Trials(filter(trial -> trial.rungs > 0 || trial.error !== nothing, trials))
end
