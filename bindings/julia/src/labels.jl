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
