# All tests of the package. `bindings/julia/test.sh` runs them against an installed library.
using S3CMTF, Test
using SparseArrays, Random, Serialization

include("films.jl")

@testset "S3CMTF" begin
    for file in ("fixture.jl", "data.jl", "tables.jl", "files.jl", "options.jl", "fits.jl", "models.jl", "coupled.jl", "matching.jl", "predictions.jl",
        "discovery.jl", "lifetimes.jl", "threads.jl", "bad_input.jl", "interrupts.jl", "showing.jl", "documents.jl")
        @testset "$file" begin
            seconds = @elapsed include(file)
            println(rpad(file, 16), lpad(round(seconds; digits=1), 6), " s")
        end
    end
end
