# Sparse tensors and matrices.

"""
    Tensor(indices, values; weights, dims, modes, base=1, copy=true)
    Tensor((i, j, ..., values); ...)
    Tensor(matrix::SparseMatrixCSC)
    Tensor(table; columns, value, weight, strings, like, dims)
    Tensor(path; mapped=true, verify=true, text options...)

A sparse tensor, or a sparse matrix as a tensor of order 2: per entry one index per mode, a value and optionally a weight.

- `indices`: a tuple of integer vectors, one per mode; a matrix with one column per mode; or a vector of tuples or `CartesianIndex`.
  They count from 1, or from `base`. `dims` are the sizes of the modes, by default the largest indices. `modes` names the modes.
- `copy=false` uses the arrays in place. It needs `base=0`, `dims`, and vectors of `UInt32` indices and `Float32` or `Float64`
  values, which must not be modified while the tensor is in use.
- `table`: a named tuple of vectors, a data frame, another object whose properties are vectors, or a vector of named tuples.
  `value` is by default the only column that `columns` and `weight` leave; else the one called rating, value, stars, score or count;
  else the only one with numbers. `columns` (one per mode) are all others but `weight`. A column that does not hold integers has names of rows; `strings` lists columns of integers that are names as well. Names are numbered in the order
  of their first occurrence, after those of `like`, a tensor or model whose names the table has in common. The table then has a
  column with the name of each mode; columns of modes without a name are found by their order.
- `path`: a binary `.coo` file, which is mapped into memory unless `mapped=false` and must not be modified while it is, or a text
  file (`.tns`, `.mtx`, `.csv`, `.tsv`, also gzipped), for which the text options of the library are keywords, such as
  `zero_based=true` or `columns=["user", "film"]`.

`size`, `ndims`, `nnz`, `indices`, `values` and `weights` read a tensor; `save` writes it to a file.
"""
struct Tensor
    handle::Handle{s3cmtf_coo}
    modes::Vector{Symbol}
    labels::Vector{ModeLabels}
    # Arrays that the library refers to.
    arrays::Any
end

default_mode(mode) = Symbol(:mode, mode)
default_modes(order) = [default_mode(mode) for mode in 1:order]

function mode_names(modes, order)
    modes === nothing && return default_modes(order)
    modes isa Union{AbstractVector,Tuple} || throw(ArgumentError("modes is $(repr(modes)); give a name for each mode, such as (:user, :film)"))
    length(modes) == order || throw(DimensionMismatch("there are $(length(modes)) names of modes for $order modes"))
    allunique(modes) || throw(ArgumentError("names of modes occur more than once: $(join(modes, ", "))"))
    return Symbol[Symbol(mode) for mode in modes]
end

Tensor(tensor::Tensor) = tensor
function Tensor(indices, values; weights=nothing, dims=nothing, modes=nothing, base=1, copy=true)
    cells = cell_arrays(indices; base=base)
    handle, arrays = coo_from_arrays(cells, values, weights, dims, copy)
    return Tensor(handle, mode_names(modes, order(cells)), no_labels(order(cells)), arrays)
end

function Tensor(entries::Tuple{Vararg{AbstractVector}}; options...)
    length(entries) > 2 || throw(ArgumentError("a tuple of entries has a vector of indices per mode and the values at the end"))
    return Tensor(Base.front(entries), last(entries); options...)
end

function Tensor(matrix::SparseMatrixCSC; options...)
    rows, columns, values = findnz(matrix)
    return Tensor((rows, columns), values; dims=size(matrix), options...)
end

function Tensor(path::AbstractString; mapped=true, verify=true, text...)
    mode = (mapped ? S3CMTF_OPEN_MAPPED : S3CMTF_OPEN_PRIVATE) | (verify ? Int32(0) : S3CMTF_OPEN_UNVERIFIED)
    handle = use(text_options(; text...)) do options
        create(output -> s3cmtf_coo_open(path, mode, options, output), s3cmtf_coo)
    end
    order = Int(coo_info(handle).order)
    labels = ModeLabels[read_labels(path, mode) for mode in 1:order]
    return Tensor(handle, default_modes(order), labels, nothing)
end

function Tensor(object; columns=nothing, value=nothing, weight=nothing, strings=(), like=nothing, dims=nothing)
    is_table(object) || throw(ArgumentError("entries are index vectors and values, a sparse matrix, a table or a file; this is " *
        summary(object)))
    like isa Union{Nothing,Tensor,Model,Problem} ||
        throw(ArgumentError("like is $(summary(like)); it is a Tensor or a Model whose names of rows the table has in common"))
    table = column_table(object)
    columns === nothing && like !== nothing && ((columns, value) = columns_like(table, like, value, weight))
    names, value, weight = column_roles(table, columns, value, weight)
    value === nothing && throw(ArgumentError("entries need a value column"))
    rows, labels = table_rows(table, names, strings, like)
    numbers = number_array(column(table, value), "value")
    weights = weight === nothing ? nothing : column(table, weight)
    handle, arrays = coo_from_arrays(cell_arrays(rows), numbers, weights, dims, true)
    return Tensor(handle, mode_names(names, length(names)), labels, arrays)
end

"The index columns and the value column of a table whose columns have the names of the modes of `like`."
function columns_like(table::ColumnTable, like, value=nothing, weight=nothing)
    value === nothing && (value = default_value(table, weight === nothing ? like.modes : [like.modes; column_name(table, weight)]))
    return mode_columns(table, column_roles(table, nothing, value, weight)[1], like.modes), value
end

"Row numbers and names of the index columns of a table."
function table_rows(table::ColumnTable, names, strings, like)
    known = like === nothing ? no_labels(length(names)) : like.labels
    length(known) == length(names) ||
        throw(DimensionMismatch("the table has $(length(names)) index columns ($(join(names, ", "))); there are $(length(known)) modes"))
    named = Symbol[Symbol(name) for name in (strings isa Union{Symbol,AbstractString} ? (strings,) : strings)]
    foreach(name -> column(table, name), named)
    pairs = [column_rows(column(table, name), known[mode], name in named, name) for (mode, name) in enumerate(names)]
    return AbstractVector[first(pair) for pair in pairs], ModeLabels[last(pair) for pair in pairs]
end

function check_lengths(cells, values, weights)
    length(values) == cells.count ||
        throw(DimensionMismatch("there are $(cells.count) indices per mode and $(length(values)) values; each entry has one value"))
    weights === nothing || length(weights) == cells.count ||
        throw(DimensionMismatch("there are $(cells.count) entries and $(length(weights)) weights; each entry has one weight"))
end

function coo_from_arrays(cells::CellArrays, values, weights, dims, copy)
    values = number_array(values, "value")
    weights === nothing || (weights = number_array(weights, "weight"))
    check_lengths(cells, values, weights)
    sizes = UInt64[c_integer(UInt64, size, "a size in dims") for size in (dims === nothing ? () : dims)]
    isempty(sizes) || length(sizes) == order(cells) ||
        throw(DimensionMismatch("dims has $(length(sizes)) sizes; there are $(order(cells)) modes"))
    cells.count > 0 || !isempty(sizes) || throw(ArgumentError("there are no entries; give dims, the sizes of the modes"))
    copy || (!isempty(sizes) && cells.base == 0) ||
        throw(ArgumentError("copy=false needs dims, the sizes of the modes, and base=0, indices that count from 0"))
    arrays = copy ? nothing : fixed_arrays(cells, values, weights)
    handle = GC.@preserve cells values weights sizes begin
        entries = Ref(c_struct(s3cmtf_entries; order=order(cells), indices=c_indices(cells), values=pointer(values),
            dims=isempty(sizes) ? C_NULL : pointer(sizes), value_type=type_code(eltype(values)),
            weights=weights === nothing ? C_NULL : pointer(weights),
            weight_type=weights === nothing ? 0 : type_code(eltype(weights))))
        with_valid_indices(cells, isempty(sizes) ? fill(largest_size, order(cells)) : sizes) do
            create(output -> copy ? s3cmtf_coo_new(entries, output) : s3cmtf_coo_new_view(entries, output), s3cmtf_coo)
        end
    end
    return handle, arrays
end

"The arrays of entries in a form that keeps their memory in place: an array whose memory is shared is not resized."
function fixed_arrays(cells::CellArrays, values, weights)
    cells.arrays isa Vector{Any} && all(array -> array isa Vector{UInt32}, cells.arrays) && values isa Vector &&
        weights isa Union{Nothing,Vector} || throw(ArgumentError(
        "copy=false needs a Vector{UInt32} of indices per mode, and a Vector of Float32 or Float64 for values and weights"))
    return map(array -> reshape(array, length(array), 1), filter(!isnothing, Any[cells.arrays..., values, weights]))
end

coo_info(handle::Handle{s3cmtf_coo}) = use(coo -> read_struct(info -> s3cmtf_coo_get_info(coo, info), s3cmtf_coo_info), handle)

Base.close(tensor::Tensor) = close(tensor.handle)
Base.isopen(tensor::Tensor) = isopen(tensor.handle)
Base.ndims(tensor::Tensor) = length(tensor.modes)
SparseArrays.nnz(tensor::Tensor) = Int(coo_info(tensor.handle).count)

function Base.size(tensor::Tensor)
    dims = Vector{UInt64}(undef, ndims(tensor))
    use(coo -> s3cmtf_coo_get_dims(coo, dims, length(dims)), tensor.handle)
    return Tuple(Int.(dims))
end
Base.size(tensor::Tensor, mode) = size(tensor)[mode_number(tensor, mode)]

"""
    mode_number(object, mode)

Returns the number of a mode of a tensor or model, from 1. `mode` is a number or a name.
"""
mode_number(object, mode::Integer) = 1 <= mode <= length(object.modes) ? Int(mode) :
    throw(ArgumentError("mode $mode; there are $(length(object.modes)) modes, from 1"))
function mode_number(object, name)
    mode = findfirst(==(Symbol(name)), object.modes)
    mode === nothing && throw(ArgumentError("there is no mode $(repr(name)); the modes are $(join(object.modes, ", "))"))
    return mode
end

"""
    indices(tensor, mode)

Returns the indices of a mode, from 1 and one per entry, without a copy.
"""
function indices(tensor::Tensor, mode)
    use(tensor.handle) do coo
        output = Ref{Ptr{UInt32}}(C_NULL)
        s3cmtf_coo_view_indices(coo, mode_number(tensor, mode) - 1, output)
        OneBased(LibraryArray(tensor.handle, output[], nnz(tensor)))
    end
end

function number_view(tensor::Tensor, view, type)
    use(tensor.handle) do coo
        output = Ref{Ptr{Cvoid}}(C_NULL)
        view(coo, output)
        T = type == S3CMTF_F64 ? Float64 : Float32
        LibraryArray(tensor.handle, Ptr{T}(output[]), nnz(tensor))
    end
end

"""
    values(tensor)

Returns the values, one per entry, without a copy.
"""
Base.values(tensor::Tensor) = number_view(tensor, s3cmtf_coo_view_values, coo_info(tensor.handle).value_type)

"""
    weights(tensor)

Returns the weights, one per entry, without a copy; `nothing` if the entries have no weights.
"""
function weights(tensor::Tensor)
    type = coo_info(tensor.handle).weight_type
    return type == 0 ? nothing : number_view(tensor, s3cmtf_coo_view_weights, type)
end

"""
    weighted(tensor, weights)

Returns a tensor with the same entries, which are shared, and these weights: a vector with a number per entry, or a tensor that lists
the same entries with the weights as values.
"""
function weighted(tensor::Tensor, weights::AbstractVector)
    numbers = number_array(weights, "weight")
    length(numbers) == nnz(tensor) ||
        throw(DimensionMismatch("there are $(nnz(tensor)) entries and $(length(numbers)) weights; each entry has one weight"))
    handle = use(tensor.handle) do coo
        create(output -> s3cmtf_coo_new_weighted(coo, numbers, type_code(eltype(numbers)), output), s3cmtf_coo)
    end
    return Tensor(handle, tensor.modes, tensor.labels, tensor.arrays)
end

function weighted(tensor::Tensor, weights::Tensor)
    handle = use(tensor.handle, weights.handle) do coo, by
        create(output -> s3cmtf_coo_new_weighted_by(coo, by, output), s3cmtf_coo)
    end
    return Tensor(handle, tensor.modes, tensor.labels, (tensor.arrays, weights.arrays))
end

"""
    labels(object, mode)

Returns the names of the rows of a mode, or `nothing` if they have none.
"""
function labels(object, mode)
    found = object.labels[mode_number(object, mode)]
    return found === nothing ? nothing : copy(found.names)
end
