# Builds the library of this checkout with cargo and installs it into deps/usr, unless an installed copy is found.
import Libdl

package = dirname(@__DIR__)
root = dirname(dirname(package))
include(joinpath(package, "src", "c_types.jl"))
include(joinpath(package, "src", "library.jl"))

if find_library() !== nothing && get(ENV, "S3CMTF_BUILD", "") != "1"
    println("the library is ", find_library())
elseif Sys.which("cargo") === nothing
    error("cargo is not installed, and no installed copy of the library was found; install it with packaging/install.sh PREFIX and set " *
          "ENV[\"S3CMTF_PREFIX\"] to that prefix")
else
    # Julia's own libraries must not replace those of cargo and of the C compiler.
    withenv("LD_LIBRARY_PATH" => nothing) do
        run(`$(joinpath(root, "packaging", "install.sh")) $(joinpath(@__DIR__, "usr"))`)
    end
end
