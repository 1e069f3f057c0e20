# Bad input is an exception that says what is wrong.
says(text, f) = occursin(text, message(f)) || (println(message(f)); false)
model = quick_fit()

@testset "entries" begin
    @test says("3 indices per mode and 2 values", () -> Tensor((1:3, 1:3), [1.0, 2.0]))
    @test says("the modes have 3, 2 indices", () -> Tensor((1:3, 1:2), [1.0, 2.0, 3.0]))
    @test says("3 entries and 1 weights", () -> Tensor((1:3, 1:3), ones(3); weights=[1.0]))
    @test says("dims has 3 sizes", () -> Tensor((1:3, 1:3), ones(3); dims=(3, 3, 3)))
    @test says("names of modes", () -> Tensor((1:3, 1:3), ones(3); modes=(:a,)))
    @test says("index 0 of entry 2 in mode 1 is below 1", () -> Tensor(([1, 0], [1, 1]), ones(2)))
    @test says("index -5 of entry 1 in mode 2 is below 1", () -> Tensor([(1, -5), (1, 1)], ones(2)))
    @test says("below 1, the first index", () -> Tensor((UInt32[1, 0], UInt32[1, 1]), ones(2)))
    @test says("is missing", () -> Tensor(([1, missing], [1, 1]), ones(2)))
    @test says("value 2 is missing", () -> Tensor((1:2, 1:2), [1.0, missing]))
    @test says("not a number", () -> Tensor((1:2, 1:2), ["a", "b"]))
    @test says("index 1.5 of entry 1 in mode 1 is not an integer", () -> Tensor(([1.5, 2.0], [1, 1]), ones(2)))
    @test says("Bool", () -> Tensor(([true, false], [1, 1]), ones(2)))
    @test says("tuple of vectors", () -> Tensor("abc" => 1, ones(2)))
    @test says("index vectors and values", () -> Tensor(17))
    @test says("values at the end", () -> Tensor((1:3, ones(3))))
    @test thrown(() -> Tensor((), Float64[])) isa ArgumentError
    @test says("a size in dims is -1", () -> Tensor((1:3, 1:3), ones(3); dims=(3, -1)))
    @test says("copy=false needs dims", () -> Tensor((UInt32[0], UInt32[0]), [1.0]; base=0, copy=false))
    @test says("base=0", () -> Tensor((UInt32[1], UInt32[1]), [1.0]; dims=(1, 1), copy=false))
    @test says("index 8589934592 of entry 2 in mode 1 is beyond its size 4294967295", () -> Tensor(([1, 2^33], [1, 1]), ones(2)))
    @test says("of entry 1 in mode 2 is beyond 4294967295", () -> Tensor(([1], [big(2)^80]), ones(1)))
    @test says("base is 5; indices count from 1 or from 0", () -> Tensor(([5], [5]), ones(1); base=5))
    @test says("base is 5", () -> Tensor([(5, 5)], ones(1); base=5))
    @test says("modes is \"ab\"", () -> Tensor(([1], [1]), ones(1); modes="ab"))
    @test says("more than once: a, a", () -> Tensor(([1], [1]), ones(1); modes=(:a, :a)))
    @test says("type is Int64; it is Float32, Float64", () -> save(ratings(), "x.coo"; type=Int))
    @test says("index 20 of entry 2 in mode 1 is beyond its size 10", () -> Tensor(([1, 20], [1, 1]), ones(2); dims=(10, 1)))
end

@testset "values" begin
    for bad in (NaN, Inf, -Inf)
        failure = thrown(() -> fit(Tensor(([1, 2, 3], [1, 2, 3]), [1.0, bad, 2.0]); rank=1))
        @test failure isa S3CMTFError && failure.status == S3CMTF.S3CMTF_BAD_ENTRY && occursin("2", failure.message)
    end
    @test thrown(() -> quick_fit(weighted(ratings(), fill(-1.0, 600)))) isa S3CMTFError
    @test thrown(() -> quick_fit(weighted(ratings(), fill(NaN, 600)))) isa S3CMTFError
    @test says("600 entries and 3 weights", () -> weighted(ratings(), ones(3)))
    @test says("there are no entries; give dims", () -> Tensor((Int[], Int[]), Float64[]))
    @test thrown(() -> fit(Tensor((Int[], Int[]), Float64[]; dims=(3, 3)))) isa S3CMTFError
end

@testset "tables" begin
    @test says("column b has 2 rows", () -> Tensor((a=1:3, b=1:2, value=1:3)))
    @test says("row 2 of column a is missing", () -> Tensor((a=["x", missing], b=1:2, value=1:2)))
    @test says("is not an integer", () -> Tensor((a=[1.5, 2.5], b=1:2, value=1:2)))
    @test says("a column is a vector", () -> Tensor((a=1:3, b=2, value=1:3)))
    @test says("no index columns", () -> Tensor((value=1:3,)))
    @test says("there is no column :c; the columns are a, b, value", () -> Tensor((a=1:3, b=1:3, value=1:3); strings=[:c]))
    @test says("there is no column 7", () -> Tensor((a=1:3, b=1:3, value=1:3); columns=[1, 7]))
    @test says("more than once: a, a", () -> Tensor((a=1:3, b=1:3, value=1:3); columns=[:a, :a]))
    @test says("like is Int64; it is a Tensor or a Model", () -> Tensor((a=1:3, b=1:3, value=1:3); like=3))
    @test labels(Tensor((a=1:3, b=1:3, value=1:3); strings=:a), :a) == ["1", "2", "3"]
end

@testset "cells and rows" begin
    @test says("the model has 3 modes", () -> predict(model, (1, 2)))
    @test says("the model has 3 modes", () -> predict(model, ([1], [2])))
    @test says("3 are needed", () -> evaluate(model, Tensor(([1], [2]), [1.0])))
    @test says("3 are needed", () -> fit(ratings(); test=Tensor(([1], [2]), [1.0])))
    @test says("below 1", () -> predict(model, (0, 1, 1)))
    @test says("below 1", () -> predict(model, ([1], [0], [1])))
    @test says("mode 4; there are 3 modes", () -> factor(model, 4))
    @test says("mode 0; there are 3 modes", () -> factor(model, 0))
    @test says("there is no mode :zone", () -> factor(model, :zone))
    @test says("Float32 or Float64", () -> predict(model, ([1], [1], [1]); type=Int))
    @test says("clip is 2", () -> predict(model, ([1], [1], [1]); clip=2))
    @test says("there is no column user: the table has the columns a, b", () -> predict(model, (a=[1], b=[1])))
    @test says("rows count from 1", () -> row(model, 1, 0))
    @test says("row 61 of mode user, which has 60 rows", () -> row(model, 1, 61))
    @test says("row 61 of mode user, which has 60 rows", () -> similar(model, :user, [1, 61]))
    @test says("row 61 of mode user, which has 60 rows", () -> concepts(model, :film; given=(user=61,)))
    @test says("quantile is 2", () -> recommend(model, :film; given=(user=1,), quantile=2))
    @test says("top is 0", () -> evaluate_ranking(model, ratings(), ratings(); mode=:film, user_mode=:user, top=0))
    for call in (() -> predict(model, ([1], [1], [1]); threads=-1), () -> evaluate(model, ratings(); threads=-1),
        () -> recommend(model, :film; given=(user=1,), threads=-1), () -> tune(ratings(); fit_threads=-1))
        @test thrown(call) isa ArgumentError && says("threads is -1; it is an integer of at least 0", call)
    end
    @test says("threads is 5000; it is an integer of at least 0 and at most 4096", () -> evaluate(model, ratings(); threads=5000))
    @test says("beyond 4294967295", () -> predict(model, (big(2)^80, 1, 1)))
    @test says("index 1099511627776 of entry 1 in mode 1 is beyond", () -> predict(model, ([2^40], [1], [1])))
    @test says("top is 2.5; it is an integer", () -> similar(model, 1, 1; top=2.5))
    @test length(similar(model, :user, 1; top=2^62)) == 59 && length(recommend(model, :film; given=:user => 1, top=2^62)) == 40
    @test says("given is 1; it has a row for each given mode", () -> recommend(model, :film; given=1))
    @test says("the same mode more than once: 1, user", () -> recommend(model, :film; given=[1 => 1, :user => 2]))
    @test says("row 41 of mode film, which has 40 rows", () -> recommend(model, :film; given=:user => 1, candidates=[41]))
    @test says("row 99 of mode film, which has 40 rows", () -> recommend(model, :film; given=:user => 1, candidates=[1, 99]))
    @test says("rows are at most 4294967295", () -> recommend(model, :film; given=:user => 2^40))
    @test says("exclude_mode is another mode", () -> recommend(model, :film; given=:user => 1, exclude=ratings(), exclude_mode=:film))
    @test says("2 rows of mode user are given; give one", () -> concepts(model, :film; given=(user=[1, 2],)))
    @test says("give rows of other modes", () -> concepts(model, :film; given=(film=1,)))
    @test says("min_relevant_value is NaN", () -> evaluate_ranking(model, ratings(), ratings(); mode=2, user_mode=1, min_relevant_value=NaN))
    @test says("init is Int64; it is a Model", () -> fit(ratings(); init=3))
    @test says("k is -2; it is an integer of at least 0", () -> clusters(model, :film; k=-2))
    @test says("k is 2.5; it is an integer", () -> clusters(model, :film; k=2.5))
    @test says("trials is 0", () -> tune(ratings(); trials=0))
    @test says("rungs is 0", () -> tune(ratings(); rungs=0))
    @test says("valid_fraction is 1", () -> tune(ratings(); valid_fraction=1))
end

@testset "matrices" begin
    @test says("the weight of a matrix is Inf", () -> CoupledMatrix(2, kinds; weight=Inf))
    @test says("the penalty of a matrix is -1", () -> CoupledMatrix(2, kinds; penalty=-1))
    @test says("zeros is 1.5; it is an integer", () -> CoupledMatrix(2, kinds; kind=:sampled, zeros=1.5))
    @test quick_fit(; matrices=[CoupledMatrix(2, fill(missing, 40, 2); kind=:observed, weight=1)]) isa Model
    @test says("zeros is 0", () -> CoupledMatrix(2, kinds; kind=:sampled, zeros=0))
    @test says("the weight of a matrix is -1.0", () -> fold_in(quick_fit(; matrices=[2 => kinds]), 2; matrices=[(1, kinds, -1.0)]))
    @test says("CoupledMatrix(mode, data)", () -> Problem(ratings(); matrices=[kinds]))
    @test thrown(() -> Problem(ratings(); matrices=[5 => kinds])) isa ArgumentError
    @test thrown(() -> fit(ratings(); rank=2, matrices=[CoupledMatrix(2, (1:2, 1:2, [1.0, NaN]); kind=:observed, weight=1)])) isa S3CMTFError
    @test says("the matrix has 50 rows, but mode film has 40", () -> Problem(ratings(dims=(60, 40, 6)); matrices=[2 => (1:50, ones(Int, 50), ones(50))]))
    @test says("the matrix has 30 rows, but mode film has 40", () -> Problem(ratings(); matrices=[:film => ones(30, 2)]))
    @test says("the matrix has 45 rows, but mode film has 50", () -> Problem(ratings(); matrices=[:film => ones(50, 2), :film => ones(45, 2)]))
    # Rows beyond those of a mode with names would have none.
    named = Tensor(ratings_table)
    for matrix in (ones(50, 2), sparse(ones(50, 2)), (1:50, ones(Int, 50), ones(50)))
        @test says("the matrix has 50 rows, but mode film has 40; give it a row for each row of the mode, or labels", () -> Problem(named; matrices=[:film => matrix]))
    end
    @test size(quick_fit(named; matrices=[CoupledMatrix(:film, ones(40, 2); kind=:observed, weight=1)]), :film) == 40
    @test says("a graph is a square matrix; this is 40 x 30", () -> Problem(ratings(); matrices=[Graph(:film, ones(40, 30))]))
    @test says("a column of rows, one of columns and one of values", () -> Problem(Tensor(ratings_table); matrices=[:film => (film=["a"], value=[1.0])]))
end

@testset "new rows" begin
    named = quick_fit(Tensor(ratings_table))
    new_row(film, user=1) = ([user, user], [film, film], [1, 2], [1.0, 2.0])
    @test_logs (:warn, r"^in 2 of 2 entries the row of mode user is not in the model") fold_in(model, :film; tensor=new_row(41, 70))
    @test says("row 50 of mode film has no name", () -> fold_in(named, :film; tensor=new_row(50)))
    @test says("the entries have 2 modes", () -> fold_in(model, :film; tensor=([1], [1], [1.0])))
    @test says("the tensor has no entries", () -> fold_in(model, :film; tensor=Tensor((Int[], Int[], Int[]), Float64[]; dims=(60, 40, 6))))
    @test says("a tensor or matrices", () -> fold_in(model, :film))
    @test says("row 3 of mode film is in the model already, from 16 entries; leave it out, or replace it with replace=true", () -> fold_in(model, :film; tensor=new_row(3)))
    known = (user=[1, 1], film=["film 3", "film 3"], month=["month 1", "month 2"], stars=[1.0, 2.0])
    @test says("row \"film 3\" of mode film is in the model already", () -> fold_in(named, :film; tensor=known))
    @test fold_in(named, :film; tensor=known, replace=true).replaced == 1
end

@testset "labels of clusters" begin
    named = quick_fit(Tensor(ratings_table))
    @test says("the matrix has 30 rows, but mode film has 40", () -> clusters(model, :film; k=2, matrices=ones(30, 2)))
    @test says("the matrix has 50 rows, but mode film has 40", () -> clusters(model, :film; k=2, matrices=[(1:50, 1:50, ones(50))]))
    @test says("has 2 modes; this has 3", () -> clusters(model, :film; k=2, matrices=[ratings()]))
    @test says("mode film: the model and matrix 1 have no name in common", () -> clusters(named, :film; k=2, matrices=[(film=["x", "y"], kind=["a", "b"], value=1:2)]))
    some = (film=["x", "film 1", "film 3", "film 5"], kind=["a", "b", "b", "b"], value=ones(4))
    @test_logs (:info, r"^mode film: .* 1 only in matrix 1 \(such as \"x\"\), left out") clusters(named, :film; k=2, matrices=[some])
end

# A vector whose first index is not 1, as of OffsetArrays.
struct Shifted{T} <: AbstractVector{T}
    elements::Vector{T}
end
Base.size(vector::Shifted) = size(vector.elements)
Base.axes(vector::Shifted) = (Base.IdentityUnitRange((1:length(vector.elements)) .- 3),)
Base.getindex(vector::Shifted, i::Int) = vector.elements[i+3]

@testset "vectors of other kinds" begin
    tensor = Tensor((Shifted([1, 2, 3]), 1:2:5), Shifted([1.0, 2.0, 3.0]); weights=view([0, 1, 2, 3], 2:4))
    @test [collect(indices(tensor, mode)) for mode in 1:2] == [[1, 2, 3], [1, 3, 5]]
    @test collect(values(tensor)) == collect(weights(tensor)) == [1, 2, 3]
    @test says("index 0 of entry 2 in mode 1 is below 1", () -> Tensor((Shifted([1, 0]), 1:2), 1:2))
    @test predict(model, (Shifted(users), Shifted(films), Shifted(months))) == predict(model, (users, films, months))
    @test length(similar(model, :user, Shifted([1, 2]))) == 2
    @test length(recommend(model, :film; given=:user => Shifted([1, 2]), candidates=Shifted([3, 4]))) == 2
end

@testset "files and texts" begin
    @test thrown(() -> load("absent.s3m")) isa S3CMTFError
    for (object, file) in ((model, "x.s3m"), (quick_fit(Tensor(ratings_table)), "x.s3m"), (ratings(), "x.coo"), (Tensor(ratings_table), "x.coo"))
        path = joinpath("absent", "folder", file)
        @test thrown(() -> save(object, path)) isa S3CMTFError
        @test says("$path cannot be written: there is no folder $(dirname(path)); make it first", () -> save(object, path))
    end
    @test thrown(() -> save(ratings(), "nul\0byte.coo")) isa ArgumentError
    @test statusname(S3CMTFError(3, "x")) == "S3CMTF_BAD_ARGUMENT"
    @test sprint(showerror, S3CMTFError(3, "x")) == "S3CMTFError: x"
end
