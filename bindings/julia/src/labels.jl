# Names of the rows of a mode, as in columns of strings.

"The first `count` elements."
at_most(count, list) = list[1:min(count, end)]

"Names of rows, numbered from 1 in the order of their first occurrence."
struct Labels
    names::Vector{String}
    rows::Dict{String,Int}
end

Labels() = Labels(String[], Dict{String,Int}())

function Labels(names::AbstractVector)
    labels = Labels()
    for (row, name) in enumerate(names)
        push!(labels.names, string(name))
        # Rows without a name, and further rows with the same name, are not found by it.
        isempty(name) || get!(labels.rows, string(name), row)
    end
    return labels
end

"Whether a row has a name, which may be empty."
has_name(labels::Labels, row) = row <= length(labels) && (!isempty(labels.names[row]) || get(labels.rows, "", 0) == row)

Base.copy(labels::Labels) = Labels(copy(labels.names), copy(labels.rows))
Base.length(labels::Labels) = length(labels.names)

"Throws if a name cannot be written to a file: the library reads UTF-8 text, whose end a NUL character is."
check_name(name) = isvalid(name) && !('\0' in name) ||
    throw(ArgumentError("the name $(repr(name)) is not UTF-8 text without a NUL character"))

"Returns the row of a name, which is added if it is new."
row!(labels::Labels, name::AbstractString) = get!(labels.rows, name) do
    check_name(name)
    push!(labels.names, name)
    length(labels.names)
end

"The name of a row, or its number if it has none."
label(labels::Labels, row::Integer) = has_name(labels, row) ? labels.names[row] : string(row)

const ModeLabels = Union{Nothing,Labels}

no_labels(order) = ModeLabels[nothing for _ in 1:order]

label(::Nothing, row::Integer) = string(row)

"The rows of a mode in one input: what messages call the input, the names of the rows, and their number."
struct Rows
    source::String
    labels::ModeLabels
    size::Int
end

# What becomes of rows that only a later input has.
const appended, unseen, left_out = "appended to the mode", "unseen: they count as the mean row", "left out"

"""
Matches the rows of a mode in an input, `given`, with those that are `known`: by name if both sides have names, otherwise by number, with
a warning if one side has names. Returns the row of the mode for each row of the input, or `nothing` if both have the same numbers; and
the names that are known, followed by those that only the input has. `fate` is what becomes of rows that only the input has; `nothing`
if all of them may be new, without a message.
"""
function match_rows(known::Rows, given::Rows, title, fate)
    if known.labels === nothing || given.labels === nothing
        if known.labels !== given.labels
            named, bare = given.labels === nothing ? (known, given) : (given, known)
            @warn "$title: there are names in $(named.source) and none in $(bare.source); rows are matched by number"
        end
        return nothing, known.labels
    end
    known.labels === given.labels || known.labels.names == given.labels.names || return match_names(known, given, title, fate)
    return nothing, known.labels
end

function match_names(known::Rows, given::Rows, title, fate)
    check_faults(known, given, title)
    labels = copy(known.labels)
    rows = Int[row!(labels, name) for name in given.labels.names]
    new = length(labels) - length(known.labels)
    both = length(rows) - new
    fate === nothing || new == 0 || both > 0 ||
        throw(ArgumentError("$title: $(known.source) and $(given.source) have no name in common; names are such as " *
            "$(repr(known.labels.names[1])) in $(known.source) and $(repr(given.labels.names[1])) in $(given.source)"))
    if fate !== nothing && (new > 0 || fate == appended && both < length(known.labels))
        rest = new == 0 ? "" : " (such as $(repr(labels.names[length(known.labels)+1]))), $fate"
        @info "$title: rows are matched by name: $both in both $(known.source) and $(given.source), $(length(known.labels) - both) only " *
            "in $(known.source), $new only in $(given.source)$rest"
    end
    return rows == 1:length(rows) ? nothing : rows, labels
end

"Throws if a row of one side has no name, or the same name as another row."
function check_faults(known::Rows, given::Rows, title)
    for side in (known, given), row in 1:max(length(side.labels), side.size)
        first_row = has_name(side.labels, row) ? side.labels.rows[side.labels.names[row]] : 0
        first_row == row && continue
        why = first_row == 0 ? "row $row has no name" : "rows $first_row and $row are both called $(repr(side.labels.names[row]))"
        throw(ArgumentError("$title: rows of $(known.source) and $(given.source) cannot be matched by name, because in $(side.source) $why"))
    end
end

"Returns the row that a number or a name stands for."
find_row(::Nothing, row::Integer, mode) = row
find_row(::Labels, row::Integer, mode) = row
find_row(::Nothing, name, mode) = throw(ArgumentError("mode $mode has no names of rows; give the number of the row instead of $(repr(name))"))
function find_row(labels::Labels, name, mode)
    row = get(labels.rows, string(name), 0)
    row > 0 && return row
    start = lowercase(first(string(name), 3))
    near = at_most(3, filter(known -> startswith(lowercase(known), start), labels.names))
    hint = isempty(near) ? "" : "; similar names are $(join(repr.(near), ", "))"
    throw(ArgumentError("mode $mode has no row $(repr(string(name)))$hint"))
end

"Reads the names of a mode beside the file `path`; `nothing` if there is no such file."
function read_labels(path::AbstractString, mode::Integer)
    output = Ref{Ptr{s3cmtf_names}}(C_NULL)
    s3cmtf_names_open_beside(path, mode - 1, output)
    return output[] == C_NULL ? nothing : read_names(Handle(output[]))
end

"""
    row_names(path)

Reads a file with names of rows: TSV or CSV with the number of a row, from 1, in the first column and its name in the second.
"""
row_names(path::AbstractString) = open_names(path).names

open_names(path) = read_names(create(output -> s3cmtf_names_open(path, output), s3cmtf_names))

function read_names(handle::Handle{s3cmtf_names})
    labels = use(handle) do pointer
        count = Ref{UInt64}(0)
        s3cmtf_names_get_count(pointer, count)
        labels = Labels([read_text((args...) -> s3cmtf_names_get(pointer, row, args...)) for row in 0:Int(count[])-1])
        "" in labels.names && find_empty_name!(labels, pointer)
        labels
    end
    close(handle)
    return labels
end

"Finds the row whose name is empty, if there is one; other rows without a text have no name."
function find_empty_name!(labels::Labels, names::Ptr{s3cmtf_names})
    row = Ref{UInt64}(0)
    try
        s3cmtf_names_find(names, "", row)
        labels.rows[""] = row[] + 1
    catch failure
        failure isa S3CMTFError && failure.status == S3CMTF_BAD_ARGUMENT || rethrow()
    end
end
