# Finds and loads the shared library, at its first use.

const library_lock = ReentrantLock()
const library_handle = Ref{Ptr{Cvoid}}(C_NULL)

"Folder into which `deps/build.jl` installs the library."
const built_prefix = joinpath(dirname(@__DIR__), "deps", "usr")

# libs3cmtf.so, also with a version number, or libs3cmtf.dylib, or s3cmtf.dll.
is_library(file) = occursin(r"^(lib)?s3cmtf\.(so|dylib|dll)([.0-9]*)$", file)

function find_in_prefix(prefix)
    for folder in ("lib", "lib64", joinpath("lib", string(Sys.ARCH, "-linux-gnu")), "bin")
        path = joinpath(prefix, folder)
        files = isdir(path) ? filter(is_library, readdir(path)) : String[]
        isempty(files) || return joinpath(path, first(sort(files)))
    end
    return nothing
end

function find_by_pkg_config()
    Sys.which("pkg-config") === nothing && return nothing
    folder = try
        readchomp(pipeline(`pkg-config --variable=libdir s3cmtf`; stderr=devnull))
    catch
        return nothing
    end
    files = isdir(folder) ? filter(is_library, readdir(folder)) : String[]
    return isempty(files) ? nothing : joinpath(folder, first(sort(files)))
end

"""
Returns the path of the shared library, or `nothing`. The search order is: the file `ENV["S3CMTF_LIBRARY"]`, the
prefix `ENV["S3CMTF_PREFIX"]`, pkg-config, and the build of `deps/build.jl`.
"""
function find_library()
    file = get(ENV, "S3CMTF_LIBRARY", "")
    if !isempty(file)
        isfile(file) || error("S3CMTF_LIBRARY is $file, which is not a file; it names the shared library")
        return file
    end
    prefix = get(ENV, "S3CMTF_PREFIX", "")
    if !isempty(prefix)
        found = find_in_prefix(prefix)
        found === nothing && error("S3CMTF_PREFIX is $prefix, which has no lib/libs3cmtf.so; packaging/install.sh installs it")
        return found
    end
    found = find_by_pkg_config()
    return found === nothing ? find_in_prefix(built_prefix) : found
end

function load_library()
    path = find_library()
    path === nothing && error("the library s3cmtf was not found. Run `import Pkg; Pkg.build(\"S3CMTF\")` to build it with cargo, or set " *
        "ENV[\"S3CMTF_PREFIX\"] to the prefix of an installed copy")
    library_handle[] = Libdl.dlopen(path)
    number = Int(s3cmtf_version_number())
    major, minor = number ÷ 10000, number ÷ 100 % 100
    # While the major version is 0, versions with the same minor version are compatible.
    major == S3CMTF_VERSION_MAJOR && (major > 0 || minor == S3CMTF_VERSION_MINOR) && return
    library_handle[] = C_NULL
    error("$path has version $major.$minor; this package needs $S3CMTF_VERSION_MAJOR.$S3CMTF_VERSION_MINOR. Restart Julia with another library")
end

function library()
    library_handle[] == C_NULL && lock(library_lock) do
        library_handle[] == C_NULL && load_library()
    end
    return library_handle[]
end

"Returns the address of a function of the library, which `cache` keeps."
function address(cache::Base.RefValue{Ptr{Cvoid}}, name::Symbol)
    cache[] == C_NULL && (cache[] = Libdl.dlsym(library(), name))
    return cache[]
end
