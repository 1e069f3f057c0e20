# Files with entries: text options, conversion, checks and splits.

# Options that may be repeated, with a mode that counts from 0 in the library.
const options_of_mode = (:names, :rows_of)

text_value(value::Union{AbstractString,Symbol,Real}) = string(value)
text_value(values) = join(string.(values), ",")

"Sets an option of reading text. Options with a mode have a pair, such as `names = 2 => path`, or several."
function set_text_option(text, name, value)
    if name in options_of_mode
        list = value isa Pair ? [value] : value
        list isa Union{AbstractVector,Tuple} && all(item -> item isa Pair, list) ||
            throw(ArgumentError("$name is $(repr(value)); it is a pair of a mode and a file, such as 2 => \"films.tsv\", or several"))
        for (mode, file) in list
            s3cmtf_text_set(text, string(name), string(mode - 1, ':', file))
        end
    elseif name in (:time, :bin, :split) && value isa AbstractVector
        foreach(item -> s3cmtf_text_set(text, string(name), string(item)), value)
    else
        s3cmtf_text_set(text, string(name), text_value(value))
    end
end

function text_options(; options...)
    handle = create(s3cmtf_text_new, s3cmtf_text)
    use(text -> foreach(option -> set_text_option(text, option...), pairs(options)), handle)
    return handle
end

"""
    convert_file(input, output; text options...)

Converts a text file to a binary `.coo` file, with a file of names beside it for each mode whose ids are strings (`ratings.mode1.tsv`
beside `ratings.coo`); or to text if `output` ends in `.tns`. Memory use does not grow with the file. Text options are those of the
library, such as `columns`, `value`, `strings`, `delimiter`, `time`, `bin` and `split`; `names` and `rows_of` are pairs of a mode,
from 1, and a file.
"""
convert_file(input::AbstractString, output::AbstractString; options...) =
    use(text -> s3cmtf_coo_convert(input, output, text), text_options(; options...))

"""
    check(tensor)

Counts faults of the entries: damaged sections of a file, entries out of range or not finite, and cells that are listed repeatedly.
"""
check(tensor::Tensor) = named_tuple(use(tensor.handle) do coo
    read_struct(faults -> s3cmtf_coo_check(coo, faults), s3cmtf_coo_faults)
end)

"""
    summarize(tensor)

Returns `min`, `max`, `mean` and `standard_deviation` of the values and the number of rows with an entry of each mode (`rows_used`).
"""
function summarize(tensor::Tensor)
    rows = Vector{UInt64}(undef, ndims(tensor))
    summary = use(tensor.handle) do coo
        read_struct(summary -> s3cmtf_coo_summarize(coo, summary, rows, length(rows)), s3cmtf_coo_summary)
    end
    return merge(named_tuple(summary), (rows_used=Int.(rows),))
end

"""
    save(tensor, path; type=nothing)
    save(model, path)

Writes a tensor to a binary `.coo` file, with values of `type` (`Float32` or `Float64`; by default their own), or a model to a
file. The files appear complete or not at all. Names of rows are written beside it, as `ratings.mode1.tsv` beside `ratings.coo` and
`films.s3m.mode1.tsv` beside `films.s3m`; of a model also names of the columns of matrices, as `films.s3m.matrix1.tsv`, and of the
modes, as `films.s3m.modes.tsv`. Other names files of the same path are removed. A link, or a file that this package did not write, is
renamed instead of replaced.
"""
function save(tensor::Tensor, path::AbstractString; type=nothing)
    type in (nothing, Float32, Float64) || throw(ArgumentError("type is $(repr(type)); it is Float32, Float64 or nothing"))
    code = type === nothing ? Int32(0) : type_code(type)
    check_folder(path)
    stem = splitext(path)[1]
    write_with_names(() -> use(coo -> s3cmtf_coo_write(coo, path, code), tensor.handle), names_beside(names_file, stem, tensor.labels), stem)
    return path
end

const keep_codes = (mean=S3CMTF_KEEP_MEAN, first=S3CMTF_KEEP_FIRST, last=S3CMTF_KEEP_LAST)

"Returns the code of a word, such as a kind of matrix."
function code(codes::NamedTuple, word, what)
    haskey(codes, Symbol(word)) && return codes[Symbol(word)]
    throw(ArgumentError("$what $(repr(word)); it is one of $(join(repr.(keys(codes)), ", "))"))
end

"Calls `f` with a tensor that must be an opened file; the library's message for another one names functions of C."
function use_file(f, tensor::Tensor)
    try
        return use(f, tensor.handle)
    catch failure
        failure isa S3CMTFError && occursin("entries are in memory", failure.message) || rethrow()
        throw(ArgumentError("the tensor is in memory; this needs an opened file: save() it, then open it with Tensor(path)"))
    end
end

"""
    fix(tensor, path; keep=:mean)

Writes a copy of an opened file without entries that are out of range or not finite. Of entries of the same cell it keeps the
`:mean`, the `:first` or the `:last`. Returns the numbers of entries `dropped` and `merged`.
"""
function fix(tensor::Tensor, path::AbstractString; keep=:mean)
    dropped, merged = Ref{UInt64}(0), Ref{UInt64}(0)
    use_file(coo -> s3cmtf_coo_fix(coo, path, code(keep_codes, keep, "keep is"), dropped, merged), tensor)
    return (dropped=Int(dropped[]), merged=Int(merged[]))
end

"""
    split_file(tensor, prefix; test=0, valid=0, seed=0, latest=nothing)

Splits an opened file into `PREFIX.train.coo` and, for fractions above 0, `PREFIX.test.coo` and `PREFIX.valid.coo`. Random entries are
held out or, with `latest = row_mode => time_mode`, those with the largest indices in `time_mode` of each row of `row_mode`. Returns
the paths.
"""
function split_file(tensor::Tensor, prefix::AbstractString; test=0, valid=0, seed=0, latest=nothing)
    latest isa Union{Nothing,Pair} || throw(ArgumentError("latest is $(repr(latest)); it is a pair of modes, such as 1 => 3"))
    row_mode, time_mode = latest === nothing ? (0, 0) : mode_number.(Ref(tensor), Tuple(latest)) .- 1
    request = Ref(c_struct(s3cmtf_split_request; test_fraction=test, valid_fraction=valid, seed=seed,
        latest=latest !== nothing, row_mode=row_mode, time_mode=time_mode))
    use_file(coo -> s3cmtf_coo_split(coo, prefix, request), tensor)
    path(part) = string(prefix, '.', part, ".coo")
    return (train=path("train"), test=test > 0 ? path("test") : nothing, valid=valid > 0 ? path("valid") : nothing)
end
