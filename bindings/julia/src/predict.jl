# Predictions and their uncertainty.

const clip_codes = Dict(nothing => S3CMTF_CLIP_DEFAULT, false => S3CMTF_CLIP_OFF, true => S3CMTF_CLIP_ON)

"""
    predict(model, cells; clip=nothing, type=Float64, threads=0)
    predict(model, cells; deviation=true, interval=0.9, quantiles=[0.05, 0.95], ...)
    predict(model, cell::Tuple)

Predicts cells of the tensor. `cells` is a tuple of index vectors, a matrix with one column per mode, a vector of tuples, a table, or
a `Tensor`, whose values are ignored. Indices and names that did not occur in the data are predicted from the mean row of their mode.
`clip` limits predictions to the range of the training values; by default only on bounded scales such as ratings.

The first form returns a vector of `type`. With `deviation`, `interval` or `quantiles`, the result has the columns `prediction`,
`deviation`, `lower` and `upper` (the bounds of the central interval of that probability) and `quantiles` (a matrix with one row
per cell) that were asked for. They need a model with posterior samples: `fit(...; algorithm=:gibbs)`.

The last form returns the prediction for one cell, given by an index or name per mode.
"""
function predict(model::Model, cell::Tuple{Vararg{Union{Integer,AbstractString,Symbol}}})
    length(cell) == ndims(model) || throw(DimensionMismatch("the cell has $(length(cell)) indices; the model has $(ndims(model)) modes"))
    rows = map(mode -> find_row(model.labels[mode], cell[mode], model.modes[mode]), 1:ndims(model))
    all(>=(1), rows) || throw(ArgumentError("an index of the cell $cell is below 1, the first index"))
    all(<=(largest_size), rows) || throw(ArgumentError("an index of the cell $cell is beyond $largest_size"))
    prediction = Ref(0.0)
    use(pointer -> s3cmtf_model_predict_cell(pointer, UInt64.(rows .- 1), prediction), model.handle)
    return prediction[]
end

function predict(model::Model, tensor::Tensor; options...)
    tensor, _ = entries_like(tensor, model, "cells")
    return predict_arrays(nnz(tensor); options...) do predictions, request
        use(model.handle, tensor.handle) do pointer, coo
            s3cmtf_model_predict_coo(pointer, coo, predictions, length(predictions), type_code(eltype(predictions)), request)
        end
    end
end

function predict(model::Model, cells; options...)
    arrays = cell_arrays(is_table_of_entries(cells) ? table_cells(model, cells) : cells)
    order(arrays) == ndims(model) ||
        throw(DimensionMismatch("the cells have $(order(arrays)) indices each; the model has $(ndims(model)) modes"))
    return predict_arrays(arrays.count; options...) do predictions, request
        indices = Ref(c_indices(arrays))
        with_valid_indices(arrays) do
            use(model.handle) do pointer
                GC.@preserve arrays s3cmtf_model_predict(pointer, indices, predictions, length(predictions),
                    type_code(eltype(predictions)), request)
            end
        end
    end
end

"Row numbers in the index columns of a table."
function table_cells(model::Model, object)
    table = column_table(object)
    names = mode_columns(table, table.names, model.modes)
    rows, labels = table_rows(table, names, names[model.labels.!==nothing], nothing)
    return first(match_columns(rows, labels, model, "cells"))
end

"Allocates the outputs, calls `run(predictions, request)` and returns them."
function predict_arrays(run, count; clip=nothing, type::Type=Float64, threads=0, deviation=false, interval=nothing, quantiles=nothing)
    type <: FloatType || throw(ArgumentError("predictions are Float32 or Float64, not $type"))
    haskey(clip_codes, clip) || throw(ArgumentError("clip is $(repr(clip)); it is true, false or nothing"))
    interval === nothing || 0 < interval < 1 || throw(ArgumentError("interval is $interval; a probability is above 0 and below 1"))
    probabilities = collect(Float64, quantiles === nothing ? () : quantiles)
    interval === nothing || append!(probabilities, ((1 - interval) / 2, (1 + interval) / 2))
    predictions = Vector{type}(undef, count)
    deviations = Vector{type}(undef, deviation ? count : 0)
    # Those of a cell are contiguous.
    values = Matrix{type}(undef, length(probabilities), isempty(probabilities) ? 0 : count)
    GC.@preserve deviations values probabilities begin
        request = Ref(c_struct(s3cmtf_predict_request; clip=clip_codes[clip], threads=threads,
            deviations=deviation ? pointer(deviations) : C_NULL,
            quantiles=isempty(probabilities) ? C_NULL : pointer(probabilities), quantile_count=length(probabilities),
            quantile_values=isempty(probabilities) ? C_NULL : pointer(values)))
        run(predictions, request)
    end
    result = (prediction=predictions,)
    deviation && (result = merge(result, (deviation=deviations,)))
    interval === nothing || (result = merge(result, (lower=values[end-1, :], upper=values[end, :])))
    quantiles === nothing || (result = merge(result, (quantiles=permutedims(values[1:length(quantiles), :]),)))
    return length(result) == 1 ? predictions : result
end
