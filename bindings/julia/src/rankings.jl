# Recommendations and similar rows.

"""
A list of rows, the best first: `rows`, `scores` and `names` (`nothing` if the mode has no names of rows).
"""
struct Ranking
    rows::Vector{Int}
    scores::Vector{Float64}
    names::Union{Nothing,Vector{String}}
end

Base.length(ranking::Ranking) = length(ranking.rows)

"Splits the outputs of the library into lists; `base` is the first row in them."
function ranking_lists(rows, scores, counts, top, labels::ModeLabels, base)
    return map(enumerate(counts)) do (query, count)
        range = (query-1)*top .+ (1:Int(count))
        numbers = Int.(rows[range]) .+ (1 - base)
        Ranking(numbers, scores[range], labels === nothing ? nothing : [label(labels, row) for row in numbers])
    end
end

"The length of lists of rows of a mode with `size` rows."
function list_length(top, size)
    length = c_integer(Int, top, "top")
    length >= 1 || throw(ArgumentError("top is $top; a list has at least 1 row"))
    return min(length, size)
end

"Pairs of the number of a mode and its row or rows, from a named tuple, a dictionary or pairs."
function given_pairs(model::Model, given)
    list = given isa Union{NamedTuple,AbstractDict} ? collect(pairs(given)) : given isa Pair ? [given] : given
    list isa Union{AbstractVector,Tuple} && all(pair -> pair isa Pair, list) ||
        throw(ArgumentError("given is $(repr(given)); it has a row for each given mode, such as (user=1,) or :user => 1"))
    found = Pair{Int,Any}[mode_number(model, mode) => rows for (mode, rows) in list]
    allunique(first.(found)) || throw(ArgumentError("given has the same mode more than once: $(join(first.(list), ", "))"))
    return found
end

row_numbers(model::Model, mode::Int, rows::AbstractVector) = [find_row(model.labels[mode], row, model.modes[mode]) for row in collect(rows)]
row_numbers(model::Model, mode::Int, row) = [find_row(model.labels[mode], row, model.modes[mode])]

function positive_rows(rows, what)
    all(>=(1), rows) || throw(ArgumentError("row $(rows[findfirst(<(1), rows)]) of $what; rows count from 1"))
    all(<=(largest_size), rows) || throw(ArgumentError("row $(maximum(rows)) of $what; rows are at most $largest_size"))
    return collect(UInt64, rows)
end

"As `positive_rows`, for rows of a mode that the model must have."
function rows_in_model(model::Model, mode::Int, rows)
    beyond = findfirst(>(size(model, mode)), rows)
    beyond === nothing || throw(ArgumentError("row $(rows[beyond]) of mode $(model.modes[mode]), which has $(size(model, mode)) rows"))
    return positive_rows(rows, "mode $(model.modes[mode])")
end

check_quantile(quantile) = 0 <= quantile < 1 ||
    throw(ArgumentError("quantile is $quantile; it is above 0 and below 1, or 0 to rank by predictions"))

"""
    recommend(model, mode; given, top=10, exclude=nothing, exclude_mode, candidates, exclude_rows=[], quantile=0, threads=0)

Lists the `top` rows of a mode with the largest predictions (not clipped) for given rows of other modes.

- `given`: rows of other modes by number or name, such as `(user="anna", month=3)`, `:user => 8` or `[1 => [1, 2, 3]]`. With vectors the
  result has one list per element. Modes that are not given are averaged over.
- `exclude`: entries; rows that have one with the given row of `exclude_mode` are left out. It is by default the first given mode.
- `candidates`: the only rows to rank. `exclude_rows`: rows to leave out.
- `quantile`: above 0, ranks by this quantile, which needs a model with posterior samples.

Returns a `Ranking` or a vector of them.
"""
function recommend(model::Model, mode; given, top=10, exclude=nothing, exclude_mode=nothing, candidates=nothing, exclude_rows=(),
    quantile=0, threads=0)
    check_quantile(quantile)
    ranked = mode_number(model, mode)
    top = list_length(top, size(model, ranked))
    pairs = given_pairs(model, given)
    isempty(pairs) && throw(ArgumentError("give the row of at least one other mode, such as given=(user=1,)"))
    modes = first.(pairs)
    ranked in modes && throw(ArgumentError("mode $mode is ranked; give rows of other modes"))
    queries = [positive_rows(row_numbers(model, number, last(pair)), "mode $number") for (number, pair) in zip(modes, pairs)]
    count = maximum(length, queries)
    queries = [length(rows) == 1 ? fill(rows[1], count) : rows for rows in queries]
    all(rows -> length(rows) == count, queries) ||
        throw(DimensionMismatch("the given modes have $(join(length.(queries), ", ")) rows; each has as many, or one"))
    only_rows = rows_in_model(model, ranked, candidates === nothing ? Int[] : row_numbers(model, ranked, collect(candidates)))
    without = positive_rows(row_numbers(model, ranked, collect(exclude_rows)), "exclude_rows")
    excluded = exclude === nothing ? nothing : first(entries_like(exclude, model, "exclude"))
    by = exclude_mode === nothing ? modes[1] : mode_number(model, exclude_mode)
    by == ranked && throw(ArgumentError("mode $mode is ranked; exclude_mode is another mode"))
    rows, scores = Vector{UInt64}(undef, top * count), Vector{Float64}(undef, top * count)
    counts = Vector{UInt64}(undef, count)
    pointers = fill(C_NULL, ndims(model))
    handles = excluded === nothing ? (model.handle,) : (model.handle, excluded.handle)
    use(handles...) do model_pointer, coo...
        GC.@preserve queries pointers only_rows without begin
            foreach((number, list) -> pointers[number] = pointer(list), modes, queries)
            indices = c_struct(s3cmtf_indices; modes=pointer(pointers), count=count, type=S3CMTF_U64, base=1)
            request = Ref(c_struct(s3cmtf_recommend_request; mode=ranked - 1, top=top, queries=indices, quantile=quantile,
                exclude=isempty(coo) ? C_NULL : coo[1], exclude_mode=by - 1,
                candidates=candidates === nothing ? C_NULL : pointer(only_rows), candidate_count=length(only_rows),
                exclude_rows=isempty(without) ? C_NULL : pointer(without), exclude_row_count=length(without), threads=threads))
            s3cmtf_model_recommend(model_pointer, request, rows, scores, length(rows), counts)
        end
    end
    lists = ranking_lists(rows, scores, counts, top, model.labels[ranked], 1)
    return any(pair -> last(pair) isa AbstractVector, pairs) ? lists : lists[1]
end

"""
    similar(model, mode, row; top=10, threads=0)
    similar(model, mode, rows::AbstractVector; ...)

Lists the `top` other rows of a mode with the most similar predictions, by the cosine over all cells. Rows are numbers or names.
Returns a `Ranking`, or one for each of several rows.
"""
function Base.similar(model::Model, mode::Union{Integer,Symbol,AbstractString}, rows; top=10, threads=0)
    number = mode_number(model, mode)
    top = list_length(top, size(model, number))
    wanted = rows_in_model(model, number, row_numbers(model, number, rows)) .- 1
    found, scores = Vector{UInt64}(undef, top * length(wanted)), Vector{Float64}(undef, top * length(wanted))
    counts = Vector{UInt64}(undef, length(wanted))
    use(model.handle) do model_pointer
        GC.@preserve wanted begin
            request = Ref(c_struct(s3cmtf_similar_request; mode=number - 1, top=top, rows=pointer(wanted), row_count=length(wanted),
                threads=threads))
            s3cmtf_model_similar(model_pointer, request, found, scores, length(found), counts)
        end
    end
    lists = ranking_lists(found, scores, counts, top, model.labels[number], 0)
    return rows isa AbstractVector ? lists : lists[1]
end
