# Files with names of rows, which are written beside tensors and models.

names_file(stem, mode) = string(stem, ".mode", mode, ".tsv")
modes_file(model) = string(model, ".modes.tsv")

# As the library writes and reads names: tab, line ends and backslash are escaped.
escape(name) = replace(replace(replace(replace(name, '\\' => "\\\\"), '\t' => "\\t"), '\n' => "\\n"), '\r' => "\\r")

"A complete file that still has a temporary name."
struct StagedFile
    temporary::String
    path::String
end

cannot_write(path, reason) = S3CMTFError(S3CMTF_SYSTEM, "$path cannot be written: $reason")

"Writes names to a temporary file beside `path`, which `commit` replaces."
function stage_names(names, path::AbstractString)
    foreach(check_name, names)
    isdir(path) && throw(cannot_write(path, "it is a folder"))
    folder = dirname(abspath(path))
    isdir(folder) || throw(cannot_write(path, "there is no folder $folder"))
    file = StagedFile(tempname(folder; cleanup=false), path)
    try
        size = open(file.temporary, "w") do io
            size = write(io, "index\tname\n")
            for (row, name) in enumerate(names)
                isempty(name) || (size += write(io, string(row, '\t', escape(name), '\n')))
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

"Gives a file its final name. `mv` would remove the old file first."
function commit(file::StagedFile)
    status = ccall(:jl_fs_rename, Int32, (Cstring, Cstring), file.temporary, file.path)
    status < 0 && throw(cannot_write(file.path, unsafe_string(ccall(:uv_strerror, Cstring, (Int32,), status))))
end

"Writes pairs of a path and its names after `write_data()`: nothing is replaced if a file of names cannot be written."
function write_with_names(write_data, files)
    staged = StagedFile[]
    try
        foreach(((path, names),) -> push!(staged, stage_names(names, path)), files)
        write_data()
        foreach(commit, staged)
    finally
        foreach(discard, staged)
    end
end

"Reads the names of the modes beside a model file; modes without a name have the default."
function read_modes(path::AbstractString, order::Int)
    modes, file = default_modes(order), modes_file(path)
    names = isfile(file) ? row_names(file) : String[]
    # Another model may have replaced the one that the names belong to.
    length(names) > order && return modes
    return [isempty(get(names, mode, "")) ? modes[mode] : Symbol(names[mode]) for mode in 1:order]
end

"The names of modes for their file: empty for those without a name."
written_modes(modes) = [name === default_mode(mode) ? "" : string(name) for (mode, name) in enumerate(modes)]

"Pairs of a path and the names of the rows of a mode, of all modes that have names."
names_beside(object, stem) = [names_file(stem, mode) => labels.names for (mode, labels) in enumerate(object.labels) if labels !== nothing]
