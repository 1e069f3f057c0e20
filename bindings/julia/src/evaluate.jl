# Errors and scores of a model on held-out entries.

function scores(model::Model, data, threads, call, ::Type{T}) where {T}
    tensor, _ = entries_like(data, model, "data")
    threads = c_field(UInt64, threads, :threads)
    return named_tuple(use(model.handle, tensor.handle) do pointer, coo
        read_struct(output -> call(pointer, coo, threads, output), T)
    end)
end

"""
    evaluate(model, data; threads=0)

Returns the errors of the predictions for entries: `rmse` and `mae`, and both for predictions that are clipped to the range of the
training values. `data` is a `Tensor` or anything that `Tensor` accepts; a table has the columns and names of the model.
"""
evaluate(model::Model, data; threads=0) = scores(model, data, threads, s3cmtf_model_evaluate, s3cmtf_evaluation)

"""
    evaluate_binary(model, data; threads=0)

Returns the scores of the predictions for entries with exactly two values: `auc`, `log_loss` and others.
"""
evaluate_binary(model::Model, data; threads=0) =
    scores(model, data, threads, s3cmtf_model_evaluate_binary, s3cmtf_binary_scores)

"""
    evaluate_distributions(model, data; threads=0)

Returns the scores of the predictive distributions of a model with posterior samples: `log_score`, `crps`, and the coverage of
central intervals.
"""
evaluate_distributions(model::Model, data; threads=0) =
    scores(model, data, threads, s3cmtf_model_evaluate_distributions, s3cmtf_distribution_scores)

"""
    evaluate_ranking(model, test, train; mode, user_mode, top=10, quantile=0, min_relevant_value=nothing, threads=0)

Returns `hit_rate`, `recall` and `ndcg` of lists of `top` rows of `mode` for the rows of `user_mode`, and the same for lists ordered by
popularity. Relevant are the rows of a user's entries in `test`, with `min_relevant_value` only those of at least that value;
rows with an entry of the user in `train` are left out.
"""
function evaluate_ranking(model::Model, test, train; mode, user_mode, top=10, quantile=0, min_relevant_value=nothing, threads=0)
    check_quantile(quantile)
    min_relevant_value === nothing || !isnan(min_relevant_value) || throw(ArgumentError("min_relevant_value is NaN; it is a number"))
    test, train = first(entries_like(test, model, "test")), first(entries_like(train, model, "train"))
    request = Ref(c_struct(s3cmtf_ranking_request; mode=mode_number(model, mode) - 1, user_mode=mode_number(model, user_mode) - 1,
        length=list_length(top, size(model, mode)), quantile=quantile, min_relevant_value=something(min_relevant_value, 0.0),
        has_min_relevant_value=min_relevant_value !== nothing, threads=threads))
    return named_tuple(use(model.handle, test.handle, train.handle) do pointer, test, train
        read_struct(output -> s3cmtf_model_evaluate_ranking(pointer, test, train, request, output), s3cmtf_ranking)
    end)
end
