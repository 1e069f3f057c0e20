# Waits during which other tasks run and interrupts (Ctrl-C) are seen.

"Longest time in seconds for which a wait does not see an interrupt or another task."
const longest_pause = 0.05

"Waits until `done()`. An interrupt ends the wait."
function wait_until(done)
    pause = 2e-5
    while !done()
        # A task cannot sleep for less than a millisecond.
        pause < 0.001 ? Libc.systemsleep(pause) : sleep(pause)
        pause = min(1.05 * pause, longest_pause)
    end
end

# A long call of the library runs in a thread that Julia does not know, so that neither tasks nor the garbage collector of other
# threads wait for it.

const call_is_running = Int32(-1)

"A call of the C function `target`. `status` is `call_is_running` until it has returned."
struct ThreadCall{A<:Tuple}
    target::Ptr{Cvoid}
    arguments::A
    status::Ptr{Int32}
end

# The only Julia code in that thread: it does not allocate.
@generated function run_call(call::Ptr{ThreadCall{A}}) where {A}
    arguments = [:(loaded.arguments[$i]) for i in 1:fieldcount(A)]
    quote
        loaded = unsafe_load(call)
        unsafe_store!(loaded.status, ccall(loaded.target, Int32, ($(fieldtypes(A)...),), $(arguments...)))
        return nothing
    end
end

"""
Returns the status of a call of the C function `target` with `arguments(token)`, of types `A`. An interrupt requests the token's
cancellation and is thrown when the call has returned.
"""
function interruptible_call(arguments, target::Ptr{Cvoid}, ::Type{A}) where {A<:Tuple}
    cancel = create(s3cmtf_cancel_new, s3cmtf_cancel)
    status = use(token -> call_in_thread(() -> s3cmtf_cancel_request(token), target, A, arguments(token)), cancel)
    close(cancel)
    return status
end

"""
Returns the status of a call of the C function `target` with `arguments`, of types `A`. After an interrupt, and when the call has
returned, `cancel()` is called.
"""
function call_in_thread(cancel, target::Ptr{Cvoid}, ::Type{A}, arguments) where {A<:Tuple}
    status = Ref(call_is_running)
    roots = map(Base.cconvert, fieldtypes(A), arguments)
    values = map(Base.unsafe_convert, fieldtypes(A), roots)
    call = Ref(ThreadCall{A}(target, values, Base.unsafe_convert(Ptr{Int32}, status)))
    entry = @cfunction(run_call, Cvoid, (Ptr{ThreadCall{A}},))
    thread = Ref{UInt}(0)
    has_returned() = status[] != call_is_running
    GC.@preserve roots call status disable_sigint() do
        code = ccall(:uv_thread_create, Cint, (Ptr{UInt}, Ptr{Cvoid}, Ptr{ThreadCall{A}}), thread, entry, call)
        code == 0 || throw(S3CMTFError(S3CMTF_SYSTEM, "a thread cannot be created: " * uv_message(code)))
        try
            Base.reenable_sigint(() -> wait_until(has_returned))
        finally
            cancel()
            wait_until(has_returned)
            ccall(:uv_thread_join, Cint, (Ptr{UInt},), thread)
        end
    end
    return status[]
end

uv_message(code) = unsafe_string(ccall(:uv_strerror, Cstring, (Cint,), code))

"A copy of a struct of the library, with a cancellation token."
with_token(request::Ref{T}, token) where {T} =
    Ref(T((name === :cancel ? token : getfield(request[], name) for name in fieldnames(T))...))
