# The functions of include/s3cmtf.h. test/signatures.py compares the declarations with the header.

"Whether an argument of type `Ptr{name}` is a cancellation token or a struct that has one."
has_token(type) = Meta.isexpr(type, :curly) && type.args[2] isa Symbol && hasfield(getfield(@__MODULE__, type.args[2]), :cancel)
is_token(type) = type == :(Ptr{s3cmtf_cancel})

"""
    @declare name(types...)::result

Defines a function that calls the C function `name`. If its last parameter is an error handle and it returns a status, the Julia
function has neither: it throws an `S3CMTFError` if the call fails. If a parameter is a cancellation token, which the Julia function
does not have, or a struct with a token, an interrupt cancels the call.
"""
macro declare(declaration)
    call, result = declaration.args
    name, types = call.args[1], call.args[2:end]
    cache = gensym(name)
    checked = result === :Int32 && length(types) > 0 && types[end] == :(Ptr{s3cmtf_error})
    given = [Symbol(:argument, i) for i in 1:(length(types) - checked)]
    target = :(address($cache, $(QuoteNode(name))))
    parameters, status = given, :(ccall($target, $result, ($(types...),), $(given...), error))
    if checked && any(type -> is_token(type) || has_token(type), types)
        parameters = [argument for (argument, type) in zip(given, types) if !is_token(type)]
        values = [is_token(type) ? :token : has_token(type) ? :(with_token($argument, token)) : argument for (argument, type) in zip(given, types)]
        status = :(interruptible_call(token -> ($(values...), error), $target, Tuple{$(types...)}))
    end
    body = if checked
        quote
            error = new_error()
            try
                status = $status
                status == S3CMTF_OK || throw_error(status, error)
            finally
                s3cmtf_error_free(error)
            end
            return nothing
        end
    else
        :(ccall($target, $result, ($(types...),), $(given...)))
    end
    return esc(quote
        const $cache = Ref{Ptr{Cvoid}}(C_NULL)
        function $name($(parameters...))
            $body
        end
    end)
end

@declare s3cmtf_status_name(Int32)::Cstring
@declare s3cmtf_error_new(Ptr{Ptr{s3cmtf_error}})::Int32
@declare s3cmtf_error_message(Ptr{s3cmtf_error})::Cstring
@declare s3cmtf_error_free(Ptr{s3cmtf_error})::Cvoid
@declare s3cmtf_version_number()::UInt32
@declare s3cmtf_version()::Cstring
@declare s3cmtf_cancel_new(Ptr{Ptr{s3cmtf_cancel}}, Ptr{s3cmtf_error})::Int32
@declare s3cmtf_cancel_request(Ptr{s3cmtf_cancel})::Cvoid
@declare s3cmtf_cancel_free(Ptr{s3cmtf_cancel})::Cvoid
@declare s3cmtf_text_new(Ptr{Ptr{s3cmtf_text}}, Ptr{s3cmtf_error})::Int32
@declare s3cmtf_text_set(Ptr{s3cmtf_text}, Cstring, Cstring, Ptr{s3cmtf_error})::Int32
@declare s3cmtf_text_free(Ptr{s3cmtf_text})::Cvoid
@declare s3cmtf_coo_open(Cstring, Int32, Ptr{s3cmtf_text}, Ptr{s3cmtf_cancel}, Ptr{Ptr{s3cmtf_coo}}, Ptr{s3cmtf_error})::Int32
@declare s3cmtf_coo_new(Ptr{s3cmtf_entries}, Ptr{Ptr{s3cmtf_coo}}, Ptr{s3cmtf_error})::Int32
@declare s3cmtf_coo_new_view(Ptr{s3cmtf_entries}, Ptr{Ptr{s3cmtf_coo}}, Ptr{s3cmtf_error})::Int32
@declare s3cmtf_coo_get_info(Ptr{s3cmtf_coo}, Ptr{s3cmtf_coo_info}, Ptr{s3cmtf_error})::Int32
@declare s3cmtf_coo_get_dims(Ptr{s3cmtf_coo}, Ptr{UInt64}, UInt64, Ptr{s3cmtf_error})::Int32
@declare s3cmtf_coo_view_indices(Ptr{s3cmtf_coo}, UInt64, Ptr{Ptr{UInt32}}, Ptr{s3cmtf_error})::Int32
@declare s3cmtf_coo_view_values(Ptr{s3cmtf_coo}, Ptr{Ptr{Cvoid}}, Ptr{s3cmtf_error})::Int32
@declare s3cmtf_coo_free(Ptr{s3cmtf_coo})::Cvoid
@declare s3cmtf_coo_new_weighted(Ptr{s3cmtf_coo}, Ptr{Cvoid}, Int32, Ptr{Ptr{s3cmtf_coo}}, Ptr{s3cmtf_error})::Int32
@declare s3cmtf_coo_new_weighted_by(Ptr{s3cmtf_coo}, Ptr{s3cmtf_coo}, Ptr{Ptr{s3cmtf_coo}}, Ptr{s3cmtf_error})::Int32
@declare s3cmtf_coo_view_weights(Ptr{s3cmtf_coo}, Ptr{Ptr{Cvoid}}, Ptr{s3cmtf_error})::Int32
@declare s3cmtf_coo_check(Ptr{s3cmtf_coo}, Ptr{s3cmtf_cancel}, Ptr{s3cmtf_coo_faults}, Ptr{s3cmtf_error})::Int32
@declare s3cmtf_coo_summarize(
    Ptr{s3cmtf_coo}, Ptr{s3cmtf_cancel}, Ptr{s3cmtf_coo_summary}, Ptr{UInt64}, UInt64, Ptr{s3cmtf_error})::Int32
@declare s3cmtf_coo_write(Ptr{s3cmtf_coo}, Cstring, Int32, Ptr{s3cmtf_cancel}, Ptr{s3cmtf_error})::Int32
@declare s3cmtf_coo_convert(Cstring, Cstring, Ptr{s3cmtf_text}, Ptr{s3cmtf_cancel}, Ptr{s3cmtf_error})::Int32
@declare s3cmtf_coo_fix(Ptr{s3cmtf_coo}, Cstring, Int32, Ptr{s3cmtf_cancel}, Ptr{UInt64}, Ptr{UInt64}, Ptr{s3cmtf_error})::Int32
@declare s3cmtf_coo_split(Ptr{s3cmtf_coo}, Cstring, Ptr{s3cmtf_split_request}, Ptr{s3cmtf_error})::Int32
@declare s3cmtf_options_new(Cstring, Ptr{Ptr{s3cmtf_options}}, Ptr{s3cmtf_error})::Int32
@declare s3cmtf_options_parse(Ptr{s3cmtf_options}, Cstring, Ptr{s3cmtf_error})::Int32
@declare s3cmtf_options_set(Ptr{s3cmtf_options}, Cstring, Cstring, Ptr{s3cmtf_error})::Int32
@declare s3cmtf_options_get(Ptr{s3cmtf_options}, Cstring, Ptr{UInt8}, UInt64, Ptr{UInt64}, Ptr{s3cmtf_error})::Int32
@declare s3cmtf_options_free(Ptr{s3cmtf_options})::Cvoid
@declare s3cmtf_option_count()::UInt64
@declare s3cmtf_option_get_info(UInt64, Ptr{s3cmtf_option_info}, Ptr{s3cmtf_error})::Int32
@declare s3cmtf_preset_name(UInt64, Ptr{Cstring}, Ptr{s3cmtf_error})::Int32
@declare s3cmtf_problem_new(Ptr{s3cmtf_coo}, Ptr{Ptr{s3cmtf_problem}}, Ptr{s3cmtf_error})::Int32
@declare s3cmtf_problem_add_matrix(Ptr{s3cmtf_problem}, UInt64, Ptr{s3cmtf_coo}, Ptr{s3cmtf_coupling}, Ptr{s3cmtf_error})::Int32
@declare s3cmtf_problem_free(Ptr{s3cmtf_problem})::Cvoid
@declare s3cmtf_fit_new(Ptr{s3cmtf_problem}, Ptr{s3cmtf_options}, Ptr{Ptr{s3cmtf_fit}}, Ptr{s3cmtf_error})::Int32
@declare s3cmtf_fit_set_test(Ptr{s3cmtf_fit}, Ptr{s3cmtf_coo}, Ptr{s3cmtf_error})::Int32
@declare s3cmtf_fit_set_valid(Ptr{s3cmtf_fit}, Ptr{s3cmtf_coo}, Ptr{s3cmtf_error})::Int32
@declare s3cmtf_fit_set_init(Ptr{s3cmtf_fit}, Ptr{s3cmtf_model}, Ptr{s3cmtf_error})::Int32
@declare s3cmtf_fit_set_checkpoint(Ptr{s3cmtf_fit}, Cstring, Ptr{s3cmtf_error})::Int32
@declare s3cmtf_fit_set_resume(Ptr{s3cmtf_fit}, Cstring, Ptr{s3cmtf_error})::Int32
@declare s3cmtf_fit_set_plan(Ptr{s3cmtf_fit}, Cstring, Ptr{s3cmtf_error})::Int32
@declare s3cmtf_fit_plan(Ptr{s3cmtf_fit}, Ptr{UInt8}, UInt64, Ptr{UInt64}, Ptr{s3cmtf_error})::Int32
@declare s3cmtf_fit_start(Ptr{s3cmtf_fit}, Ptr{s3cmtf_error})::Int32
@declare s3cmtf_fit_get_progress(Ptr{s3cmtf_fit}, Ptr{s3cmtf_progress}, Ptr{s3cmtf_error})::Int32
@declare s3cmtf_fit_wait(Ptr{s3cmtf_fit}, Float64, Ptr{Int32}, Ptr{s3cmtf_error})::Int32
@declare s3cmtf_fit_cancel(Ptr{s3cmtf_fit})::Cvoid
@declare s3cmtf_fit_take(Ptr{s3cmtf_fit}, Ptr{Ptr{s3cmtf_model}}, Ptr{s3cmtf_error})::Int32
@declare s3cmtf_fit_free(Ptr{s3cmtf_fit})::Cvoid
@declare s3cmtf_tune_new(
    Ptr{s3cmtf_problem}, Ptr{s3cmtf_options}, Ptr{s3cmtf_tune_request}, Ptr{Ptr{s3cmtf_tune}}, Ptr{s3cmtf_error})::Int32
@declare s3cmtf_tune_set_range(Ptr{s3cmtf_tune}, Cstring, Cstring, Ptr{s3cmtf_error})::Int32
@declare s3cmtf_tune_set_checkpoint(Ptr{s3cmtf_tune}, Cstring, Ptr{s3cmtf_error})::Int32
@declare s3cmtf_tune_set_resume(Ptr{s3cmtf_tune}, Cstring, Ptr{s3cmtf_error})::Int32
@declare s3cmtf_tune_set_callback(Ptr{s3cmtf_tune}, Ptr{Cvoid}, Ptr{Cvoid}, Ptr{s3cmtf_error})::Int32
@declare s3cmtf_tune_run(Ptr{s3cmtf_tune}, Ptr{s3cmtf_error})::Int32
@declare s3cmtf_tune_get_count(Ptr{s3cmtf_tune}, Ptr{UInt64}, Ptr{s3cmtf_error})::Int32
@declare s3cmtf_tune_get_trial(Ptr{s3cmtf_tune}, UInt64, Ptr{s3cmtf_trial}, Ptr{s3cmtf_error})::Int32
@declare s3cmtf_tune_get_options(Ptr{s3cmtf_tune}, UInt64, Ptr{Ptr{s3cmtf_options}}, Ptr{s3cmtf_error})::Int32
@declare s3cmtf_tune_free(Ptr{s3cmtf_tune})::Cvoid
@declare s3cmtf_model_load(Cstring, Int32, Ptr{Ptr{s3cmtf_model}}, Ptr{s3cmtf_error})::Int32
@declare s3cmtf_model_save(Ptr{s3cmtf_model}, Cstring, Ptr{s3cmtf_error})::Int32
@declare s3cmtf_model_export(Ptr{s3cmtf_model}, Cstring, Ptr{s3cmtf_cancel}, Ptr{s3cmtf_error})::Int32
@declare s3cmtf_model_free(Ptr{s3cmtf_model})::Cvoid
@declare s3cmtf_model_get_info(Ptr{s3cmtf_model}, Ptr{s3cmtf_model_info}, Ptr{s3cmtf_error})::Int32
@declare s3cmtf_model_get_mode(Ptr{s3cmtf_model}, UInt64, Ptr{s3cmtf_model_mode}, Ptr{s3cmtf_error})::Int32
@declare s3cmtf_model_get_matrix(Ptr{s3cmtf_model}, UInt64, Ptr{s3cmtf_model_matrix}, Ptr{s3cmtf_error})::Int32
@declare s3cmtf_model_get_options(Ptr{s3cmtf_model}, Ptr{Ptr{s3cmtf_options}}, Ptr{s3cmtf_error})::Int32
@declare s3cmtf_model_get_record(Ptr{s3cmtf_model}, Ptr{UInt8}, UInt64, Ptr{UInt64}, Ptr{s3cmtf_error})::Int32
@declare s3cmtf_model_get_plan(Ptr{s3cmtf_model}, Ptr{UInt8}, UInt64, Ptr{UInt64}, Ptr{s3cmtf_error})::Int32
@declare s3cmtf_model_get_epoch(Ptr{s3cmtf_model}, UInt64, Ptr{s3cmtf_progress}, Ptr{s3cmtf_error})::Int32
@declare s3cmtf_model_copy_row_indices(Ptr{s3cmtf_model}, UInt64, Ptr{Cvoid}, UInt64, Int32, Ptr{s3cmtf_error})::Int32
@declare s3cmtf_model_copy_factor(Ptr{s3cmtf_model}, UInt64, Ptr{Cvoid}, UInt64, Int32, Int32, Ptr{s3cmtf_error})::Int32
@declare s3cmtf_model_copy_row(Ptr{s3cmtf_model}, UInt64, UInt64, Ptr{Cvoid}, UInt64, Int32, Ptr{s3cmtf_error})::Int32
@declare s3cmtf_model_view_factor(Ptr{s3cmtf_model}, UInt64, Ptr{s3cmtf_view}, Ptr{s3cmtf_error})::Int32
@declare s3cmtf_model_copy_biases(Ptr{s3cmtf_model}, UInt64, Ptr{Cvoid}, UInt64, Int32, Ptr{s3cmtf_error})::Int32
@declare s3cmtf_model_view_biases(Ptr{s3cmtf_model}, UInt64, Ptr{s3cmtf_view}, Ptr{s3cmtf_error})::Int32
@declare s3cmtf_model_copy_core(Ptr{s3cmtf_model}, Ptr{Cvoid}, UInt64, Int32, Int32, Ptr{s3cmtf_error})::Int32
@declare s3cmtf_model_view_core(Ptr{s3cmtf_model}, Ptr{s3cmtf_view}, Ptr{s3cmtf_error})::Int32
@declare s3cmtf_model_copy_matrix_indices(Ptr{s3cmtf_model}, UInt64, Ptr{Cvoid}, UInt64, Int32, Ptr{s3cmtf_error})::Int32
@declare s3cmtf_model_copy_matrix(Ptr{s3cmtf_model}, UInt64, Ptr{Cvoid}, UInt64, Int32, Int32, Ptr{s3cmtf_error})::Int32
@declare s3cmtf_model_view_matrix(Ptr{s3cmtf_model}, UInt64, Ptr{s3cmtf_view}, Ptr{s3cmtf_error})::Int32
@declare s3cmtf_model_view_offsets(Ptr{s3cmtf_model}, UInt64, Ptr{s3cmtf_view}, Ptr{s3cmtf_error})::Int32
@declare s3cmtf_model_predict_cell(Ptr{s3cmtf_model}, Ptr{UInt64}, Ptr{Float64}, Ptr{s3cmtf_error})::Int32
@declare s3cmtf_model_predict(
    Ptr{s3cmtf_model}, Ptr{s3cmtf_indices}, Ptr{Cvoid}, UInt64, Int32, Ptr{s3cmtf_predict_request}, Ptr{s3cmtf_error})::Int32
@declare s3cmtf_model_predict_coo(
    Ptr{s3cmtf_model}, Ptr{s3cmtf_coo}, Ptr{Cvoid}, UInt64, Int32, Ptr{s3cmtf_predict_request}, Ptr{s3cmtf_error})::Int32
@declare s3cmtf_model_evaluate(
    Ptr{s3cmtf_model}, Ptr{s3cmtf_coo}, UInt64, Ptr{s3cmtf_cancel}, Ptr{s3cmtf_evaluation}, Ptr{s3cmtf_error})::Int32
@declare s3cmtf_model_evaluate_binary(
    Ptr{s3cmtf_model}, Ptr{s3cmtf_coo}, UInt64, Ptr{s3cmtf_cancel}, Ptr{s3cmtf_binary_scores}, Ptr{s3cmtf_error})::Int32
@declare s3cmtf_model_evaluate_distributions(
    Ptr{s3cmtf_model}, Ptr{s3cmtf_coo}, UInt64, Ptr{s3cmtf_cancel}, Ptr{s3cmtf_distribution_scores}, Ptr{s3cmtf_error})::Int32
@declare s3cmtf_model_fold_in(
    Ptr{s3cmtf_model}, UInt64, Ptr{s3cmtf_fold_in_request}, Ptr{Ptr{s3cmtf_model}}, Ptr{UInt64}, Ptr{UInt64},
    Ptr{s3cmtf_error})::Int32
@declare s3cmtf_model_recommend(
    Ptr{s3cmtf_model}, Ptr{s3cmtf_recommend_request}, Ptr{UInt64}, Ptr{Float64}, UInt64, Ptr{UInt64},
    Ptr{s3cmtf_error})::Int32
@declare s3cmtf_model_similar(
    Ptr{s3cmtf_model}, Ptr{s3cmtf_similar_request}, Ptr{UInt64}, Ptr{Float64}, UInt64, Ptr{UInt64}, Ptr{s3cmtf_error})::Int32
@declare s3cmtf_model_evaluate_ranking(
    Ptr{s3cmtf_model}, Ptr{s3cmtf_coo}, Ptr{s3cmtf_coo}, Ptr{s3cmtf_ranking_request}, Ptr{s3cmtf_ranking},
    Ptr{s3cmtf_error})::Int32
@declare s3cmtf_concepts_new(
    Ptr{s3cmtf_model}, UInt64, Ptr{s3cmtf_concepts_request}, Ptr{Ptr{s3cmtf_concepts}}, Ptr{s3cmtf_error})::Int32
@declare s3cmtf_concepts_get_count(Ptr{s3cmtf_concepts}, Ptr{UInt64}, Ptr{s3cmtf_error})::Int32
@declare s3cmtf_concepts_get(Ptr{s3cmtf_concepts}, UInt64, Ptr{s3cmtf_concept}, Ptr{s3cmtf_error})::Int32
@declare s3cmtf_concepts_copy_rows(
    Ptr{s3cmtf_concepts}, UInt64, Int32, Ptr{UInt64}, Ptr{Float64}, UInt64, Ptr{s3cmtf_error})::Int32
@declare s3cmtf_concepts_get_column(
    Ptr{s3cmtf_concepts}, UInt64, Int32, UInt64, Ptr{s3cmtf_concept_column}, Ptr{s3cmtf_error})::Int32
@declare s3cmtf_concepts_copy_profile(
    Ptr{s3cmtf_concepts}, Ptr{Float64}, UInt64, Ptr{UInt64}, Ptr{UInt64}, Ptr{UInt64}, Ptr{s3cmtf_error})::Int32
@declare s3cmtf_concepts_free(Ptr{s3cmtf_concepts})::Cvoid
@declare s3cmtf_clusters_new(
    Ptr{s3cmtf_model}, UInt64, Ptr{s3cmtf_clusters_request}, Ptr{Ptr{s3cmtf_clusters}}, Ptr{s3cmtf_error})::Int32
@declare s3cmtf_clusters_get_info(Ptr{s3cmtf_clusters}, Ptr{s3cmtf_clusters_info}, Ptr{s3cmtf_error})::Int32
@declare s3cmtf_clusters_get(Ptr{s3cmtf_clusters}, UInt64, Ptr{s3cmtf_cluster}, Ptr{s3cmtf_error})::Int32
@declare s3cmtf_clusters_copy_members(Ptr{s3cmtf_clusters}, UInt64, Ptr{UInt64}, Ptr{Float64}, UInt64, Ptr{s3cmtf_error})::Int32
@declare s3cmtf_clusters_get_label(Ptr{s3cmtf_clusters}, UInt64, UInt64, Ptr{s3cmtf_cluster_label}, Ptr{s3cmtf_error})::Int32
@declare s3cmtf_clusters_copy_centre(Ptr{s3cmtf_clusters}, UInt64, Ptr{Float64}, UInt64, Ptr{s3cmtf_error})::Int32
@declare s3cmtf_clusters_copy_rows(Ptr{s3cmtf_clusters}, Ptr{UInt64}, Ptr{UInt64}, UInt64, Ptr{s3cmtf_error})::Int32
@declare s3cmtf_clusters_get_gap(Ptr{s3cmtf_clusters}, UInt64, Ptr{s3cmtf_gap}, Ptr{s3cmtf_error})::Int32
@declare s3cmtf_clusters_copy_information(Ptr{s3cmtf_clusters}, Ptr{Float64}, UInt64, Ptr{s3cmtf_error})::Int32
@declare s3cmtf_clusters_free(Ptr{s3cmtf_clusters})::Cvoid
@declare s3cmtf_names_open(Cstring, Ptr{Ptr{s3cmtf_names}}, Ptr{s3cmtf_error})::Int32
@declare s3cmtf_names_open_beside(Cstring, UInt64, Ptr{Ptr{s3cmtf_names}}, Ptr{s3cmtf_error})::Int32
@declare s3cmtf_names_get_count(Ptr{s3cmtf_names}, Ptr{UInt64}, Ptr{s3cmtf_error})::Int32
@declare s3cmtf_names_get(Ptr{s3cmtf_names}, UInt64, Ptr{UInt8}, UInt64, Ptr{UInt64}, Ptr{s3cmtf_error})::Int32
@declare s3cmtf_names_find(Ptr{s3cmtf_names}, Cstring, Ptr{UInt64}, Ptr{s3cmtf_error})::Int32
@declare s3cmtf_names_free(Ptr{s3cmtf_names})::Cvoid

zero_value(::Type{T}) where {T<:Number} = zero(T)
zero_value(::Type{T}) where {T<:Ptr} = T(C_NULL)
zero_value(::Type{Cstring}) = Cstring(C_NULL)
zero_value(::Type{T}) where {T} = T((zero_value(type) for type in fieldtypes(T))...)

"A number as an integer of the library."
function c_integer(::Type{T}, value, name; max=typemax(T)) where {T<:Integer}
    value isa Real && isinteger(value) && typemin(T) <= value <= max && return T(value)
    range = T <: Unsigned ? " of at least 0" * (max < typemax(T) ? " and at most $max" : "") : ""
    throw(ArgumentError("$name is $(repr(value)); it is an integer$range"))
end

const largest_thread_count = 4096

c_field(::Type{T}, value, name) where {T} = !(T <: Integer) ? convert(T, value) :
    c_integer(T, value, name; max=name in (:threads, :fit_threads) ? largest_thread_count : typemax(T))

"Creates a struct of the library: `size` is its size, and fields that are not given are 0."
function c_struct(::Type{T}; fields...) where {T}
    unknown = setdiff(keys(fields), fieldnames(T))
    isempty(unknown) || error("$T has no field $(first(unknown))")
    values = map(fieldnames(T), fieldtypes(T)) do name, type
        name === :size ? UInt64(sizeof(T)) : haskey(fields, name) ? c_field(type, fields[name], name) : zero_value(type)
    end
    return T(values...)
end

"Returns the text that `write(buffer, capacity, needed)` stores."
function read_text(write)
    needed = Ref{UInt64}(0)
    write(C_NULL, 0, needed)
    buffer = Vector{UInt8}(undef, needed[])
    write(buffer, length(buffer), needed)
    return String(buffer[1:end-1])
end

"Returns the value of an output struct that `write(ref)` fills."
function read_struct(write, ::Type{T}) where {T}
    info = Ref(c_struct(T))
    write(info)
    return info[]
end

"Creates a `T` from the given fields and, for others, those of a struct of the library with the same names."
from_struct(::Type{T}, info; fields...) where {T} =
    T((haskey(fields, name) ? fields[name] : getfield(info, name) for name in fieldnames(T))...)

"A struct of the library without its field `size`, and with integers as `Int`."
named_tuple(info::T) where {T} = NamedTuple{filter(!=(:size), fieldnames(T))}(
    Tuple(plain(getfield(info, name)) for name in fieldnames(T) if name !== :size))
plain(value::Integer) = Int(value)
plain(value) = value
