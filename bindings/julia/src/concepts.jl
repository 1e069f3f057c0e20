# What the columns of a factor represent.

"A column of a coupled matrix at an end of a concept: the number of the `matrix`, the `column`, its `name` and `share`."
struct ConceptColumn
    matrix::Int
    column::Int
    name::String
    share::Float64
end

"""
A concept of a mode: the `column` of the factor, its `strength`, and its `effect` on the prediction for a row of loading 1. `largest`
and `smallest` rank the rows by loading; `largest_columns` and `smallest_columns` are the associated columns of matrices.
If `sign_flipped`, loadings and shares have the opposite sign of the model's numbers.
"""
struct Concept
    column::Int
    strength::Float64
    effect::Float64
    sign_flipped::Bool
    largest::Ranking
    smallest::Ranking
    largest_columns::Vector{ConceptColumn}
    smallest_columns::Vector{ConceptColumn}
end

"""
The concepts of a mode, the strongest first; a vector of `Concept`. `profile` is the core contracted with the given rows, if exactly one
other mode, `profile_mode`, has no given row; otherwise `nothing`.
"""
struct Concepts <: AbstractVector{Concept}
    mode::Symbol
    concepts::Vector{Concept}
    profile::Union{Nothing,Matrix{Float64}}
    profile_mode::Union{Nothing,Symbol}
end
Base.size(concepts::Concepts) = size(concepts.concepts)
Base.getindex(concepts::Concepts, i::Int) = concepts.concepts[i]

"""
    concepts(model, mode; top=10, min_entries=1, given=())

Describes the columns of the factor of a mode. At each end at most `top` rows, of at least `min_entries` tensor entries, and `top`
columns per coupled matrix are listed. `given` are rows of other modes, such as `(user=17,)`; the remaining modes are averaged over.
"""
function concepts(model::Model, mode; top=10, min_entries=1, given=())
    number = mode_number(model, mode)
    pairs = given_pairs(model, given)
    number in first.(pairs) && throw(ArgumentError("the concepts of mode $mode are wanted; give rows of other modes"))
    modes = UInt64[mode - 1 for (mode, _) in pairs]
    rows = UInt64[only_row(model, mode, row) - 1 for (mode, row) in pairs]
    handle = use(model.handle) do model_pointer
        GC.@preserve modes rows begin
            request = Ref(c_struct(s3cmtf_concepts_request; top=top, min_entries=min_entries, given_count=length(modes),
                given_modes=isempty(modes) ? C_NULL : pointer(modes), given_rows=isempty(rows) ? C_NULL : pointer(rows)))
            create(output -> s3cmtf_concepts_new(model_pointer, number - 1, request, output), s3cmtf_concepts)
        end
    end
    result = use(handle) do found
        count = Ref{UInt64}(0)
        s3cmtf_concepts_get_count(found, count)
        list = [concept(model, number, found, index) for index in 0:Int(count[])-1]
        Concepts(model.modes[number], list, concept_profile(model, found)...)
    end
    close(handle)
    return result
end

function only_row(model::Model, mode, row)
    rows = rows_in_model(model, mode, row_numbers(model, mode, row))
    length(rows) == 1 || throw(ArgumentError("$(length(rows)) rows of mode $(model.modes[mode]) are given; give one"))
    return rows[1]
end

function concept(model::Model, mode, found, index)
    info = read_struct(info -> s3cmtf_concepts_get(found, index, info), s3cmtf_concept)
    function rows(side, count)
        numbers, loadings = Vector{UInt64}(undef, count), Vector{Float64}(undef, count)
        s3cmtf_concepts_copy_rows(found, index, side, numbers, loadings, count)
        return ranking_lists(numbers, loadings, [count], Int(count), model.labels[mode], 0)[1]
    end
    function columns(side, count)
        return map(0:Int(count)-1) do place
            output = read_struct(output -> s3cmtf_concepts_get_column(found, index, side, place, output), s3cmtf_concept_column)
            matrix, column = Int(output.matrix) + 1, Int(output.column) + 1
            from_struct(ConceptColumn, output; matrix=matrix, column=column, name=label(model.matrix_labels[matrix], column))
        end
    end
    return from_struct(Concept, info; column=info.column + 1,
        largest=rows(S3CMTF_LARGEST, info.largest_rows), smallest=rows(S3CMTF_SMALLEST, info.smallest_rows),
        largest_columns=columns(S3CMTF_LARGEST, info.largest_columns), smallest_columns=columns(S3CMTF_SMALLEST, info.smallest_columns))
end

function concept_profile(model::Model, found)
    mode, columns, count = Ref{UInt64}(0), Ref{UInt64}(0), Ref{UInt64}(0)
    s3cmtf_concepts_copy_profile(found, C_NULL, 0, mode, columns, count)
    count[] == 0 && return nothing, nothing
    # The library stores rows contiguously.
    numbers = Matrix{Float64}(undef, columns[], count[] ÷ columns[])
    s3cmtf_concepts_copy_profile(found, numbers, length(numbers), C_NULL, C_NULL, count)
    return permutedims(numbers), model.modes[mode[]+1]
end
