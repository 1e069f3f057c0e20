# The blocks of the README, one after the other, and the worked example.
readme = read(joinpath(@__DIR__, "..", "README.md"), String)
blocks(language) = [match.captures[1] for match in eachmatch(Regex("^```$language\\n(.*?)^```\$", "ms"), readme)]

"Runs `f` in a temporary folder and returns what it prints."
function printed(f)
    mktempdir() do folder
        path = joinpath(folder, "output.txt")
        cd(folder) do
            open(io -> redirect_stdout(f, io), path, "w")
        end
        return read(path, String)
    end
end

"A module for a script. `display` would write to the standard output of the time when Julia started."
function new_scope()
    scope = Module()
    Core.eval(scope, :(include(path) = Base.include($scope, path)))
    Core.eval(scope, :(display(object) = show(stdout, MIME("text/plain"), object)))
    return scope
end

@testset "README" begin
    scope = new_scope()
    code = blocks("julia")
    @test length(code) == 2
    output = printed(() -> foreach(block -> include_string(scope, block, "README.md"), code))
    # All lines of the quick start, whose numbers may differ between processors.
    shown = split(blocks("text")[1], '\n'; keepempty=false)
    without_numbers(lines) = [replace(line, r"[0-9.]+" => "#") for line in lines]
    @test without_numbers(S3CMTF.at_most(length(shown), split(output, '\n'; keepempty=false))) == without_numbers(shown)
    @test occursin("5 stars\n", output) && count("true\n", output) == 2
    @test occursin("epoch 30 of 30", output)
    # All functions of the tables are exported.
    for found in eachmatch(r"`([a-z_]+)\(", readme)
        name = Symbol(found.captures[1])
        @test isdefined(S3CMTF, name)
    end
end

@testset "example" begin
    scope = new_scope()
    Core.eval(scope, :(const ARGS = ["."]))
    files = String[]
    output = printed() do
        Base.include(scope, joinpath(@__DIR__, "..", "examples", "movielens_shaped.jl"))
        append!(files, read.(["convergence.svg", "films.svg"], String))
    end
    @test occursin("predicts the same after loading: true", output)
    convergence, films = files
    @test count("<polyline", convergence) == 4
    @test count("<circle", films) == 305
    @test all(file -> startswith(file, "<svg") && endswith(file, "</svg>\n"), files)
end
