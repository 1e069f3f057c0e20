# Objects of the library: freed by a finalizer or by `close`, and never while a call uses them.

"""
Owns an object of the library. It is freed when it is closed, by `close` or by the finalizer, no call is using it (`uses`), and no
array or copy of the handle refers to its memory (`views`). A copy has the handle that owns the object as `owner`. The lock
protects all fields; no code allocates while it holds the lock, so that a finalizer cannot wait for it.
"""
mutable struct Handle{T}
    pointer::Ptr{T}
    uses::Int
    views::Int
    isopen::Bool
    owner::Union{Nothing,Handle{T}}
    lock::Threads.SpinLock
    function Handle{T}(pointer::Ptr{T}, owner=nothing) where {T}
        handle = new{T}(pointer, 0, 0, pointer != C_NULL, owner, Threads.SpinLock())
        return finalizer(close, handle)
    end
end

Handle(pointer::Ptr{T}) where {T} = Handle{T}(pointer)

"Creates a handle for the object that `create(output)` stores."
function create(make, ::Type{T}) where {T}
    output = Ref{Ptr{T}}(C_NULL)
    make(output)
    return Handle(output[])
end

"Calls `change(handle)` under the lock, then frees the object if nothing needs it any more."
function release(change, handle::Handle)
    lock(handle.lock)
    change(handle)
    pointer = handle.pointer
    is_needed = handle.isopen || handle.uses > 0 || handle.views > 0
    is_needed || (handle.pointer = C_NULL)
    unlock(handle.lock)
    is_needed || pointer == C_NULL || free_object(handle.owner, pointer)
    return nothing
end

free_object(::Nothing, pointer) = free_object(pointer)
free_object(owner::Handle, pointer) = end_view(owner)

end_view(handle::Handle) = release(handle -> handle.views -= 1, handle)

free_object(pointer::Ptr{s3cmtf_cancel}) = s3cmtf_cancel_free(pointer)
free_object(pointer::Ptr{s3cmtf_text}) = s3cmtf_text_free(pointer)
free_object(pointer::Ptr{s3cmtf_coo}) = s3cmtf_coo_free(pointer)
free_object(pointer::Ptr{s3cmtf_options}) = s3cmtf_options_free(pointer)
free_object(pointer::Ptr{s3cmtf_problem}) = s3cmtf_problem_free(pointer)
free_object(pointer::Ptr{s3cmtf_fit}) = s3cmtf_fit_free(pointer)
free_object(pointer::Ptr{s3cmtf_tune}) = s3cmtf_tune_free(pointer)
free_object(pointer::Ptr{s3cmtf_model}) = s3cmtf_model_free(pointer)
free_object(pointer::Ptr{s3cmtf_concepts}) = s3cmtf_concepts_free(pointer)
free_object(pointer::Ptr{s3cmtf_clusters}) = s3cmtf_clusters_free(pointer)
free_object(pointer::Ptr{s3cmtf_names}) = s3cmtf_names_free(pointer)

kind(::Handle{T}) where {T} = chop(string(nameof(T)); head=7, tail=0)

function begin_use(handle::Handle)
    lock(handle.lock)
    pointer = handle.pointer
    isopen = handle.isopen
    isopen && (handle.uses += 1)
    unlock(handle.lock)
    isopen || throw(S3CMTFError("this $(kind(handle)) is closed; it cannot be used after close()"))
    return pointer
end

end_use(handle::Handle) = release(handle -> handle.uses -= 1, handle)

"Calls `f` with the pointer of each handle, none of which is freed meanwhile."
function use(f, handles::Handle...)
    used = 0
    try
        pointers = map(handles) do handle
            pointer = begin_use(handle)
            used += 1
            pointer
        end
        return f(pointers...)
    finally
        foreach(end_use, handles[1:used])
    end
end

"""
    close(object)

Releases the memory of a `Tensor`, `Problem`, `FitProgress` or `Model` now instead of at the next garbage collection. A later use
throws an `S3CMTFError`. Calls in progress and arrays that refer to the object keep its memory valid.
"""
Base.close(handle::Handle) = release(handle -> handle.isopen = false, handle)

Base.isopen(handle::Handle) = handle.isopen

# Objects never change after their creation: a deep copy shares the object, and each of the two is closed by itself.
function Base.deepcopy_internal(handle::Handle{T}, copies::IdDict) where {T}
    haskey(copies, handle) && return copies[handle]
    owner = something(handle.owner, handle)
    lock(handle.lock)
    is_open = handle.isopen
    is_open && handle !== owner && lock(owner.lock)
    is_open && (owner.views += 1)
    is_open && handle !== owner && unlock(owner.lock)
    unlock(handle.lock)
    return copies[handle] = is_open ? Handle{T}(owner.pointer, owner) : Handle{T}(Ptr{T}(C_NULL))
end
# An object of the library exists only in its process.
Serialization.serialize(::Serialization.AbstractSerializer, handle::Handle) =
    throw(S3CMTFError("a $(kind(handle)) of the library cannot be serialized; write a tensor or a model to a file with save(), and " *
        "read the file with Tensor() or load()"))
