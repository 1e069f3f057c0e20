# New rows without a new fit.

"""
    fold_in(model, mode; tensor, matrices=[], replace=false, threads=0)

Adds rows of a mode, such as new users, without a new fit. Returns the new `model` and the numbers of rows `added` and `replaced`.

- `tensor`: all entries of the new rows. A table has the columns and names of the model; new names become new rows. Rows of other
  modes that the model does not have count as the mean row of their mode, with a warning.
- `matrices`: pairs of the number of a coupled matrix of the model, from 1, and its entries for the new rows, or triples
  `(number, entries, weight)`.
- `replace=true` replaces rows of the model that have entries; otherwise such rows are an error.
"""
function fold_in(model::Model, mode; tensor=nothing, matrices=(), replace=false, threads=0)
    number = mode_number(model, mode)
    tensor === nothing && isempty(matrices) && throw(ArgumentError("give entries of the new rows: a tensor or matrices"))
    labels = copy(model.labels)
    if tensor !== nothing
        tensor, labels = entries_like(tensor, model, "tensor"; new_mode=number)
        check_new_rows(model, number, tensor, labels)
    end
    parts = map(part -> matrix_part(model, number, labels, part...), matrices isa Union{Pair,Tuple{Integer,Any,Any}} ? [matrices] : collect(matrices))
    entries = Tensor[part.entries for part in parts]
    numbers, weights = UInt64[part.number - 1 for part in parts], Float64[part.weight for part in parts]
    added, replaced = Ref{UInt64}(0), Ref{UInt64}(0)
    handles = map(part -> part.handle, tensor === nothing ? entries : [tensor; entries])
    handle = use(model.handle, handles...) do model_pointer, coos...
        matrix_pointers = collect(Ptr{s3cmtf_coo}, tensor === nothing ? coos : Base.tail(coos))
        GC.@preserve matrix_pointers numbers weights begin
            request = Ref(c_struct(s3cmtf_fold_in_request; tensor=tensor === nothing ? C_NULL : first(coos),
                matrix_count=length(entries), matrices=isempty(entries) ? C_NULL : pointer(matrix_pointers),
                matrix_numbers=isempty(entries) ? C_NULL : pointer(numbers), weights=isempty(entries) ? C_NULL : pointer(weights),
                replace=replace, threads=threads))
            with_row_names(labels[number], model.modes[number]) do
                create(output -> s3cmtf_model_fold_in(model_pointer, number - 1, request, output, added, replaced), s3cmtf_model)
            end
        end
    end
    return (model=Model(handle, model.modes, labels, model.matrix_labels), added=Int(added[]), replaced=Int(replaced[]))
end

"Calls `f`. Where the library rejects a row that the model has, the exception names the row and the keyword that replaces it."
function with_row_names(f, labels::ModeLabels, mode)
    try
        return f()
    catch failure
        found = failure isa S3CMTFError ? match(r"^row (\d+) of mode \d+ is in the model already, from (\d+) entries", failure.message) : nothing
        found === nothing && rethrow()
        row = parse(Int, found.captures[1])
        name = labels !== nothing && has_name(labels, row) ? repr(labels.names[row]) : string(row)
        throw(S3CMTFError(failure.status, "row $name of mode $mode is in the model already, from $(found.captures[2]) entries; leave it " *
            "out, or replace it with replace=true and all its entries"))
    end
end

"Throws if a new row of a mode with names has none. Warns of row numbers of other modes that the model does not have."
function check_new_rows(model::Model, new_mode, tensor, labels)
    nnz(tensor) > 0 || throw(ArgumentError("the tensor has no entries; give all entries of the new rows"))
    for (mode, name) in enumerate(model.modes)
        rows, last_row = indices(tensor, mode), size(model, mode)
        if mode != new_mode && labels[mode] === nothing
            count = Base.count(>(last_row), rows)
            count == 0 || @warn "in $count of $(length(rows)) entries the row of mode $name is not in the model and counts as the mean row"
        elseif mode == new_mode && labels[mode] !== nothing && maximum(rows) > max(last_row, length(labels[mode]))
            throw(ArgumentError("row $(maximum(rows)) of mode $name has no name, but the rows of the model have; give a table with names"))
        end
    end
end

"The entries of a matrix for new rows. `labels` gets the names of rows that only the matrix has."
function matrix_part(model::Model, mode, labels, number, data, weight=0.0)
    0 <= weight < Inf || throw(ArgumentError("the weight of a matrix is $weight; it is finite and above 0, or 0 for that of the fit"))
    kind = matrix(model, number).kind
    tensor = matrix_entries(data, kind, labels[mode], model.matrix_labels[number])
    known = Rows("the model", labels[mode], size(model, mode))
    tensor, labels[mode] = match_matrix(tensor, kind, known, "matrix $number", "mode $(model.modes[mode])", nothing)
    columns = Rows("the model", model.matrix_labels[number], 0), Rows("the new matrix", tensor.labels[2], 0)
    numbers, _ = match_rows(columns..., "columns of matrix $number", nothing)
    numbers === nothing || nnz(tensor) == 0 || (tensor = renumbered(tensor, [indices(tensor, 1), numbers[indices(tensor, 2)]]))
    return (entries=tensor, number=number, weight=weight)
end
