# Fitted models: size, factors, core, biases, record of the fit, files.

"""
A fitted model. `fit`, `load` and `fold_in` create it. It never changes and may be used by several threads at the same time.

`order`, `size`, `rank`, `rows`, `factor`, `core`, `biases`, `matrix_factor`, `offsets`, `history`, `record` and `options` read it;
`predict`, `evaluate`, `recommend`, `similar`, `concepts`, `clusters` and `fold_in` use it; `save` writes it to a file.
"""
struct Model
    handle::Handle{s3cmtf_model}
    modes::Vector{Symbol}
    labels::Vector{ModeLabels}
    matrix_labels::Vector{ModeLabels}
end

"""
    load(path; mapped=false)

Reads a model file, or the model in a checkpoint, and the names of modes, rows and matrix columns beside it. With `mapped=true` the
file is mapped into memory instead: it must not be modified or truncated while the model is in use. Replacing it, as `save` does, is
safe.
"""
function load(path::AbstractString; mapped=false)
    handle = create(output -> s3cmtf_model_load(path, mapped ? S3CMTF_OPEN_MAPPED : S3CMTF_OPEN_PRIVATE, output), s3cmtf_model)
    info = model_info(handle)
    labels = ModeLabels[read_labels(path, mode) for mode in 1:Int(info.order)]
    files = [columns_file(path, matrix) for matrix in 1:Int(info.matrices)]
    return Model(handle, read_modes(path, Int(info.order)), labels, ModeLabels[isfile(file) ? open_names(file) : nothing for file in files])
end

function save(model::Model, path::AbstractString)
    check_folder(path)
    foreach(mode -> check_name(string(mode)), model.modes)
    files = [names_beside(names_file, path, model.labels); names_beside(columns_file, path, model.matrix_labels)]
    write_with_names(() -> use(pointer -> s3cmtf_model_save(pointer, path), model.handle), files, path)
    write_modes(model.modes, path)
    return path
end

"""
    export_arrays(model, folder)

Writes factors, core, mean, biases, and factors and offsets of the matrices to a folder, as `.npy` files and text.
"""
export_arrays(model::Model, folder::AbstractString) = use(pointer -> s3cmtf_model_export(pointer, folder), model.handle)

Base.close(model::Model) = close(model.handle)
Base.isopen(model::Model) = isopen(model.handle)

model_info(handle::Handle{s3cmtf_model}) =
    use(pointer -> read_struct(info -> s3cmtf_model_get_info(pointer, info), s3cmtf_model_info), handle)
function mode_info(model::Model, mode)
    number = mode_number(model, mode)
    use(pointer -> read_struct(info -> s3cmtf_model_get_mode(pointer, number - 1, info), s3cmtf_model_mode), model.handle)
end
function matrix_info(model::Model, matrix::Integer)
    count = Int(model_info(model.handle).matrices)
    1 <= matrix <= count || throw(ArgumentError("matrix $matrix; the model has $count coupled matrices, from 1"))
    use(pointer -> read_struct(info -> s3cmtf_model_get_matrix(pointer, matrix - 1, info), s3cmtf_model_matrix), model.handle)
end

const model_kinds = (tucker=S3CMTF_MODEL_TUCKER, cp=S3CMTF_MODEL_CP)

"""
    info(model)

Returns `kind` (`:tucker` or `:cp`), `order`, the numbers of `matrices`, `epochs` and posterior `samples`, and the `mean`,
`min_value` and `max_value` of the training values.
"""
function info(model::Model)
    fields = named_tuple(model_info(model.handle))
    return merge(fields, (kind=word(model_kinds, fields.kind),))
end

"""
    matrix(model, number)

Returns the `mode`, `kind` and `weight` of a coupled matrix and the number of its `columns`; `rows` is the number of rows of its
factor, one for each column that occurred in the data.
"""
function matrix(model::Model, number::Integer)
    fields = named_tuple(matrix_info(model, number))
    return merge(fields, (mode=fields.mode + 1, kind=word(matrix_kinds, fields.kind)))
end

Base.ndims(model::Model) = length(model.modes)
Base.size(model::Model) = Tuple(Int(mode_info(model, mode).dim) for mode in 1:ndims(model))
Base.size(model::Model, mode) = Int(mode_info(model, mode).dim)

"""
    ranks(model)

Returns the rank of each mode: the number of columns of its factor.
"""
ranks(model::Model) = Tuple(Int(mode_info(model, mode).rank) for mode in 1:ndims(model))

"""
    rows(model, mode)

Returns the index of each row of the factor of a mode, ascending: the indices that occurred in the data.
"""
function rows(model::Model, mode)
    indices = Vector{UInt64}(undef, mode_info(model, mode).rows)
    use(model.handle) do pointer
        s3cmtf_model_copy_row_indices(pointer, mode_number(model, mode) - 1, indices, length(indices), S3CMTF_U64)
    end
    return Int.(indices) .+ 1
end

function library_matrix(model::Model, write)
    use(model.handle) do pointer
        view = Ref(zero_value(s3cmtf_view))
        write(pointer, view)
        shape = (Int(view[].rows), Int(view[].columns))
        LibraryArray(model.handle, view[].numbers, shape, (Int(view[].stride), 1))
    end
end

"""
    factor(model, mode)
    factor(T, model, mode)

Returns the factor of a mode, rows x rank. The first form is a read-only view of the model's memory, which it keeps alive; the second
copies it to a `Matrix{T}` of `Float32` or `Float64`. Row `r` belongs to the index `rows(model, mode)[r]`.
"""
factor(model::Model, mode) =
    library_matrix(model, (pointer, view) -> s3cmtf_model_view_factor(pointer, mode_number(model, mode) - 1, view))
function factor(::Type{T}, model::Model, mode) where {T<:FloatType}
    size = mode_info(model, mode)
    numbers = Matrix{T}(undef, size.rows, size.rank)
    use(model.handle) do pointer
        s3cmtf_model_copy_factor(pointer, mode_number(model, mode) - 1, numbers, length(numbers), type_code(T), S3CMTF_COLUMN_MAJOR)
    end
    return numbers
end

"""
    row(model, mode, index)

Returns the factor row of an index or name, or the mean row if the index did not occur in the data.
"""
function row(model::Model, mode, index)
    number = mode_number(model, mode)
    place = find_row(model.labels[number], index, model.modes[number])
    rows_in_model(model, number, [place])
    numbers = Vector{Float32}(undef, mode_info(model, mode).rank)
    use(pointer -> s3cmtf_model_copy_row(pointer, number - 1, place - 1, numbers, length(numbers), S3CMTF_F32), model.handle)
    return numbers
end

vector_of(matrix::LibraryArray{T,2}) where {T} = LibraryArray{T,1}(matrix.memory, (matrix.size[1],), (matrix.strides[1],))

"""
    biases(model, mode)
    biases(T, model, mode)

Returns the biases of a mode, one per row of its factor: a view, which is empty if the model has none, or a copy of type `T`.
"""
biases(model::Model, mode) =
    vector_of(library_matrix(model, (pointer, view) -> s3cmtf_model_view_biases(pointer, mode_number(model, mode) - 1, view)))
function biases(::Type{T}, model::Model, mode) where {T<:FloatType}
    numbers = Vector{T}(undef, mode_info(model, mode).rows)
    use(model.handle) do pointer
        s3cmtf_model_copy_biases(pointer, mode_number(model, mode) - 1, numbers, length(numbers), type_code(T))
    end
    return numbers
end

is_cp(model::Model) = model_info(model.handle).kind == S3CMTF_MODEL_CP

"""
    core(model)
    core(T, model)

Returns the core: for a Tucker model an array with one dimension per mode, for a CP model the vector of its superdiagonal. The first
form is a read-only view, the second a copy of type `T`.
"""
function core(model::Model)
    flat = library_matrix(model, s3cmtf_model_view_core)
    is_cp(model) && return LibraryArray{Float32,1}(flat.memory, (flat.size[2],), (1,))
    shape = ranks(model)
    # The last mode is contiguous; the distance between rows of `flat` is that of the mode before it.
    strides = ntuple(mode -> mode == length(shape) ? 1 : flat.strides[1] * prod(shape[mode+1:end-1]), length(shape))
    return LibraryArray{Float32,length(shape)}(flat.memory, shape, strides)
end
function core(::Type{T}, model::Model) where {T<:FloatType}
    numbers = Array{T}(undef, is_cp(model) ? (ranks(model)[1],) : ranks(model))
    use(pointer -> s3cmtf_model_copy_core(pointer, numbers, length(numbers), type_code(T), S3CMTF_COLUMN_MAJOR), model.handle)
    return numbers
end

"""
    matrix_factor(model, number)
    matrix_factor(T, model, number)

Returns the factor of the columns of a coupled matrix, a view or a copy of type `T`. Row `r` belongs to the column
`matrix_columns(model, number)[r]`. A graph has no factor.
"""
function matrix_factor(model::Model, number::Integer)
    matrix_info(model, number)
    return library_matrix(model, (pointer, view) -> s3cmtf_model_view_matrix(pointer, number - 1, view))
end
function matrix_factor(::Type{T}, model::Model, number::Integer) where {T<:FloatType}
    info = matrix_info(model, number)
    numbers = Matrix{T}(undef, info.rows, mode_info(model, Int(info.mode) + 1).rank)
    use(model.handle) do pointer
        s3cmtf_model_copy_matrix(pointer, number - 1, numbers, length(numbers), type_code(T), S3CMTF_COLUMN_MAJOR)
    end
    return numbers
end

"""
    matrix_columns(model, number)

Returns the columns of a coupled matrix that occurred in the data, ascending.
"""
function matrix_columns(model::Model, number::Integer)
    indices = Vector{UInt64}(undef, matrix_info(model, number).rows)
    use(pointer -> s3cmtf_model_copy_matrix_indices(pointer, number - 1, indices, length(indices), S3CMTF_U64), model.handle)
    return Int.(indices) .+ 1
end

"""
    offsets(model, number)

Returns the offsets of the columns of a coupled matrix, one per row of its factor: a view, which is empty if the model has none.
"""
function offsets(model::Model, number::Integer)
    matrix_info(model, number)
    return vector_of(library_matrix(model, (pointer, view) -> s3cmtf_model_view_offsets(pointer, number - 1, view)))
end

function options(model::Model)
    handle = use(pointer -> create(output -> s3cmtf_model_get_options(pointer, output), s3cmtf_options), model.handle)
    return option_values(handle)
end

"""
    record(model)

Returns the record of the fit as a named tuple: `notes` (a vector of texts: the epoch, the kind of event and its description),
`reason`, `epochs`, `best_epoch`, `train_rmse`, `test_rmse`, `valid_rmse`, `threads`, `seconds` and others. Numbers are `Int` or
`Float64`, errors that were not measured are `NaN`.
"""
function record(model::Model)
    text = use(pointer -> read_text((args...) -> s3cmtf_model_get_record(pointer, args...)), model.handle)
    facts = [Symbol(name) => String(value) for (name, value) in split.(split(text, '\n'; keepempty=false), '='; limit=2)]
    notes = String[value for (name, value) in facts if name === :note]
    return merge((notes=notes,), [name => record_value(value) for (name, value) in facts if name !== :note])
end

"The value of a text of the record: an `Int`, a `Float64`, a `Bool`, or the text itself."
function record_value(text::String)
    for type in (Int, Float64, Bool)
        value = tryparse(type, text)
        value === nothing || return value
    end
    return text
end

"""
    history(model)

Returns the `Progress` of every epoch of the fit. Errors that were not measured are `NaN`.
"""
history(model::Model) = use(model.handle) do pointer
    [Progress(read_struct(progress -> s3cmtf_model_get_epoch(pointer, epoch, progress), s3cmtf_progress))
     for epoch in 0:Int(model_info(model.handle).epochs)-1]
end
