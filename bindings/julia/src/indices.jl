# Indices of cells in Julia arrays as the library reads them, without a copy where possible.

"""
Arrays with the indices of cells, one per mode. `arrays` are kept alive while the library reads `pointers`.
"""
struct CellArrays
    pointers::Vector{Ptr{Cvoid}}
    arrays::Any
    count::Int
    stride::Int
    type::Int32
    base::Int32
end

order(cells::CellArrays) = length(cells.pointers)

c_indices(cells::CellArrays) = c_struct(s3cmtf_indices; modes=pointer(cells.pointers), count=cells.count, stride=cells.stride,
    type=cells.type, base=cells.base)

const Word = Union{Int32,UInt32,Int64,UInt64}

type_code(::Type{<:Union{Int32,UInt32}}) = S3CMTF_U32
type_code(::Type{<:Union{Int64,UInt64}}) = S3CMTF_U64
type_code(::Type{Float32}) = S3CMTF_F32
type_code(::Type{Float64}) = S3CMTF_F64

is_contiguous(vector::Vector) = true
is_contiguous(vector::StridedVector) = stride(vector, 1) == 1
is_contiguous(vector) = false

# As unsigned numbers of 32 bits, indices below 0 would be valid.
check_sign(vector::AbstractVector{Int32}, mode, base) = isempty(vector) || minimum(vector) >= base || check_first_index(vector, mode, base)
check_sign(vector, mode, base) = nothing

function check_first_index(vector, mode, base)
    place = findfirst(<(base), vector)
    place === nothing ||
        throw(ArgumentError("index $(vector[place]) of entry $place in mode $mode is below $base, the first index"))
end

function check_last_index(vector, mode, base, size)
    place = findfirst(index -> index - base >= size, vector)
    place === nothing ||
        throw(S3CMTFError(S3CMTF_BAD_ENTRY, "index $(vector[place]) of entry $place in mode $mode is beyond its size $size"))
end

"The largest size of a mode."
const largest_size = 2^32 - 1

"Calls `f`. Where the library rejects an index, the exception has the index as Julia counts."
function with_valid_indices(f, cells, sizes=fill(largest_size, order(cells)))
    try
        return f()
    catch failure
        if failure isa S3CMTFError && failure.status == S3CMTF_BAD_ENTRY
            foreach(mode -> check_first_index(mode_indices(cells, mode), mode, cells.base), 1:order(cells))
            foreach(mode -> check_last_index(mode_indices(cells, mode), mode, cells.base, sizes[mode]), eachindex(sizes))
        end
        rethrow()
    end
end

"The indices of a mode."
mode_indices(cells, mode) = cells.stride == 1 ? cells.arrays[mode] :
    view(reinterpret(eltype(eltype(cells.arrays)), cells.arrays), mode:cells.stride:cells.stride*cells.count)

checked_index(::Missing, mode, place) =
    throw(ArgumentError("the index of entry $place in mode $mode is missing; leave the entry out"))
checked_index(index::Bool, mode, place) =
    throw(ArgumentError("the indices of mode $mode are Bool; use integers, or strings for names of rows"))
function checked_index(index, mode, place)
    index isa Real && isinteger(index) || throw(ArgumentError("index $(repr(index)) of entry $place in mode $mode is not an integer"))
    abs(index) <= largest_size || throw(ArgumentError("index $index of entry $place in mode $mode is beyond $largest_size"))
    return Int(index)
end

index_array(vector::AbstractVector{T}, mode) where {T<:Word} = is_contiguous(vector) ? vector : collect(vector)
index_array(vector::AbstractVector, mode) = Int[checked_index(index, mode, place) for (place, index) in enumerate(vector)]
index_array(other, mode) = throw(ArgumentError("the indices of mode $mode are $(summary(other)); give a vector of integers"))

check_base(base) = base in (0, 1) || throw(ArgumentError("base is $(repr(base)); indices count from 1 or from 0"))

"""
Describes the indices of cells:
- a tuple or vector of vectors, one per mode, such as `(users, films, months)`;
- a matrix of integers with one column per mode;
- a vector of tuples or of `CartesianIndex`, one per cell.
"""
function cell_arrays(vectors::Union{Tuple{Vararg{AbstractVector}},AbstractVector{<:AbstractVector}}; base=1)
    check_base(base)
    isempty(vectors) && throw(ArgumentError("there are no modes; give a vector of indices for each"))
    arrays = Any[index_array(vector, mode) for (mode, vector) in enumerate(vectors)]
    lengths = map(length, arrays)
    all(==(lengths[1]), lengths) ||
        throw(DimensionMismatch("the modes have $(join(lengths, ", ")) indices; each mode needs one index per entry"))
    # One type for all modes.
    if any(array -> type_code(eltype(array)) != type_code(eltype(arrays[1])), arrays)
        arrays = Any[eltype(array) <: Union{Int64,UInt64} ? array : collect(Int64, array) for array in arrays]
    end
    foreach(mode -> check_sign(arrays[mode], mode, base), eachindex(arrays))
    pointers = Ptr{Cvoid}[pointer(array) for array in arrays]
    return CellArrays(pointers, arrays, lengths[1], 1, type_code(eltype(arrays[1])), base)
end

cell_arrays(matrix::AbstractMatrix{<:Integer}; base=1) = cell_arrays([view(matrix, :, mode) for mode in axes(matrix, 2)]; base=base)

function cell_arrays(cells::Vector{NTuple{N,T}}; base=1) where {N,T<:Word}
    check_base(base)
    numbers = reinterpret(T, cells)
    for mode in 1:N
        check_sign(view(numbers, mode:N:length(numbers)), mode, base)
    end
    first_number = Ptr{T}(pointer(cells))
    pointers = Ptr{Cvoid}[first_number + (mode - 1) * sizeof(T) for mode in 1:N]
    return CellArrays(pointers, cells, length(cells), N, type_code(T), base)
end

cell_arrays(cells::AbstractVector{CartesianIndex{N}}; base=1) where {N} =
    cell_arrays(ntuple(mode -> Int[cell[mode] for cell in cells], N); base=base)
cell_arrays(cells::AbstractVector{<:Tuple{Vararg{Integer,N}}}; base=1) where {N} =
    cell_arrays(ntuple(mode -> [Int(cell[mode]) for cell in cells], N); base=base)
cell_arrays(other; base=1) = throw(ArgumentError("cells are a tuple of vectors, one per mode, or a matrix with one column per mode, or " *
    "a vector of tuples, or a table; this is $(summary(other))"))

"Values or weights as an array that the library reads."
number_array(vector::AbstractVector{T}, what) where {T<:Union{Float32,Float64}} = is_contiguous(vector) ? vector : collect(vector)
number_array(vector::AbstractVector, what) = Float64[checked_number(number, what, place) for (place, number) in enumerate(vector)]
number_array(other, what) = throw(ArgumentError("$(what)s are $(summary(other)); give a vector with a number per entry"))
checked_number(number::Real, what, place) = Float64(number)
checked_number(::Missing, what, place) = throw(ArgumentError("$what $place is missing; leave the entry out"))
checked_number(other, what, place) = throw(ArgumentError("$what $place is $(repr(other)), which is not a number"))
