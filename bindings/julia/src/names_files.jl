# Files with names of rows, which are written beside tensors and models.

# Names of the rows of a mode, of a tensor without its extension or of a model; of the columns of a coupled matrix; and of modes.
names_file(stem, mode) = string(stem, ".mode", mode, ".tsv")
columns_file(model, matrix) = string(model, ".matrix", matrix, ".tsv")
modes_file(model) = string(model, ".modes.tsv")

# As the library writes and reads names: tab, line ends and backslash are escaped.
escape(name) = replace(replace(replace(replace(name, '\\' => "\\\\"), '\t' => "\\t"), '\n' => "\\n"), '\r' => "\\r")

const escapes = Dict("\\\\" => "\\", "\\t" => "\t", "\\n" => "\n", "\\r" => "\r")
unescape(text) = replace(text, r"\\." => found -> get(escapes, found, found))

"A complete file that still has a temporary name."
struct StagedFile
    temporary::String
    path::String
end

cannot_write(path, reason) = S3CMTFError(S3CMTF_SYSTEM, "$path cannot be written: $reason")

"Throws if the folder of a file that is to be written does not exist."
function check_folder(path::AbstractString)
    folder = dirname(path)
    isempty(folder) || isdir(folder) || throw(cannot_write(path, "there is no folder $folder; make it first"))
end

"Writes names to a temporary file beside `path`, which `commit` replaces."
function stage_names(labels::Labels, path::AbstractString; header="index\tname")
    foreach(check_name, labels.names)
    file = StagedFile(tempname(dirname(abspath(path)); cleanup=false), path)
    try
        size = open(file.temporary, "w") do io
            size = write(io, header, "\n")
            for (row, name) in enumerate(labels.names)
                has_name(labels, row) && (size += write(io, string(row, '\t', escape(name), '\n')))
            end
            flush(io)
            size
        end
        # A stream does not report all failures of the writes before the last one.
        filesize(file.temporary) == size || throw(cannot_write(path, "the file is incomplete; the disk may be full"))
    catch failure
        discard(file)
        failure isa SystemError ? throw(cannot_write(path, Libc.strerror(failure.errnum))) : rethrow()
    end
    return file
end

discard(file::StagedFile) = rm(file.temporary; force=true)

"Gives a file its final name. Only a file of this package is replaced; whatever else has that name is renamed first."
function commit(file::StagedFile)
    is_own(file.path) || set_aside(file.path)
    rename(file.temporary, file.path)
end

"Renames a file. `mv` would remove an existing file first."
function rename(from, to)
    status = ccall(:jl_fs_rename, Int32, (Cstring, Cstring), from, to)
    status < 0 && throw(cannot_write(to, uv_message(status)))
end

"Whether a file, or the file that a link leads to, begins as names files of this package do."
is_names_file(path) = isfile(path) && open(io -> read(io, 10), path) == codeunits("index\tname")

"Whether this package wrote a file. A link was not written, whatever it leads to."
is_own(path) = !islink(path) && is_names_file(path)

"Renames what is at a path, if anything is, to its name followed by `.old`, or `.old2` and so on. A link is renamed itself."
function set_aside(path)
    exists(path) = islink(path) || ispath(path)
    exists(path) || return
    old, number = string(path, ".old"), 2
    while exists(old)
        old, number = string(path, ".old", number), number + 1
    end
    rename(path, old)
    @warn "a names file that does not belong to the new file is now called $old"
end

"Removes a file of this package; whatever else is at the path is renamed."
remove_own(path) = is_own(path) ? rm(path) : set_aside(path)

"""
Writes pairs of a path and its names after `write_data()`: nothing is replaced if a file of names cannot be written. Then removes other
names files of the `stem`, which belong to a file that was replaced. A file of another format is what a user calls the rows, and stays.
"""
function write_with_names(write_data, files, stem)
    staged = StagedFile[]
    try
        foreach(((path, labels),) -> push!(staged, stage_names(labels, path)), files)
        write_data()
        foreach(commit, staged)
        others = joinpath.(dirname(stem), setdiff(names_files(stem), basename.(first.(files))))
        foreach(remove_own, filter(is_names_file, others))
    finally
        foreach(discard, staged)
    end
end

"The names files of rows and columns in the folder of `stem`."
function names_files(stem)
    start = basename(stem)
    is_beside(name) = startswith(name, start) && occursin(r"^\.(mode|matrix)[0-9]+\.tsv$", chop(name; head=length(start), tail=0))
    return filter(is_beside, readdir(dirname(abspath(stem))))
end

# Names of modes: PATH.modes.tsv beside the model PATH. The third field of its header is a digest of the model, because another
# program may replace the model without this file.

"The SHA-256 of the first and the last 64 KiB of a file."
function digest(path::AbstractString)
    open(path) do io
        first_bytes = read(io, 65536)
        seek(io, max(0, filesize(path) - 65536))
        bytes2hex(sha256([first_bytes; read(io, 65536)]))
    end
end

"Writes the names of the modes of a model file, or removes those of a model that it replaced."
function write_modes(modes, path::AbstractString)
    modes == default_modes(length(modes)) && return remove_own(modes_file(path))
    commit(stage_names(Labels(string.(modes)), modes_file(path); header="index\tname\t" * digest(path)))
end

"Reads the names of the modes of a model file, if they were saved with it."
function read_modes(path::AbstractString, order::Int)
    file = modes_file(path)
    isfile(file) || return default_modes(order)
    lines = split.(readlines(file), '\t')
    names = [unescape(last(line)) for line in lines[2:end]]
    if get(lines, 1, [])[3:end] == [digest(path)] && length(names) == order && all(isvalid, names)
        return Symbol.(names)
    end
    @warn "the names of modes in $file are ignored: they were saved with another model"
    return default_modes(order)
end

"Pairs of a path and the names that belong there: `file(stem, n)` for the element n of a list, some of which have no names."
names_beside(file, stem, list) = Pair{String,Labels}[file(stem, n) => labels for (n, labels) in enumerate(list) if labels !== nothing]
