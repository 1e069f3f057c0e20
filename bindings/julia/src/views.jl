# Arrays in memory of the library, without a copy.

"""
A read-only array in the memory of a tensor or model, which it keeps alive, also after `close`. `Array(view)` copies it.
"""
struct LibraryArray{T,N} <: AbstractArray{T,N}
    memory::Vector{T}
    size::NTuple{N,Int}
    strides::NTuple{N,Int}
end

"The finalizer of an array in memory of the library."
struct EndView{H<:Handle}
    handle::H
end
(view::EndView)(_) = end_view(view.handle)

function LibraryArray(handle::Handle, pointer::Ptr{T}, size::NTuple{N,Int}, strides::NTuple{N,Int}) where {T,N}
    any(==(0), size) && return LibraryArray{T,N}(T[], size, strides)
    # The last row may end before its stride, so that the length is not rows x stride.
    memory = unsafe_wrap(Array, pointer, 1 + sum((size .- 1) .* strides))
    lock(handle.lock)
    handle.views += 1
    unlock(handle.lock)
    finalizer(EndView(handle), memory)
    return LibraryArray{T,N}(memory, size, strides)
end

LibraryArray(handle::Handle, pointer::Ptr, length::Integer) = LibraryArray(handle, pointer, (Int(length),), (1,))

Base.size(array::LibraryArray) = array.size
Base.strides(array::LibraryArray) = array.strides
Base.elsize(::Type{LibraryArray{T,N}}) where {T,N} = sizeof(T)
Base.unsafe_convert(::Type{Ptr{T}}, array::LibraryArray{T}) where {T} = pointer(array.memory)
Base.@propagate_inbounds function Base.getindex(array::LibraryArray{T,N}, index::Vararg{Int,N}) where {T,N}
    @boundscheck checkbounds(array, index...)
    return @inbounds array.memory[1 + sum((index .- 1) .* array.strides)]
end

# The memory does not outlive the process, and never changes.
Serialization.serialize(s::Serialization.AbstractSerializer, array::LibraryArray) = Serialization.serialize(s, Array(array))
Base.deepcopy_internal(array::LibraryArray, ::IdDict) = array

"Zero-based indices in memory of the library, seen from 1."
struct OneBased <: AbstractVector{Int}
    zero_based::LibraryArray{UInt32,1}
end
Base.size(indices::OneBased) = size(indices.zero_based)
Base.IndexStyle(::Type{OneBased}) = IndexLinear()
Base.@propagate_inbounds Base.getindex(indices::OneBased, i::Int) = Int(indices.zero_based[i]) + 1
