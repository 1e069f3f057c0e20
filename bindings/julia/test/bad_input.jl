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
    @test thrown(() -> fit(Tensor((Int[], Int[]), Float64[]))) isa S3CMTFError
end

@testset "tables" begin
    @test says("column b has 2 rows", () -> Tensor((a=1:3, b=1:2, value=1:3)))
    @test says("row 2 of column a is missing", () -> Tensor((a=["x", missing], b=1:2, value=1:2)))
    @test says("is not an integer", () -> Tensor((a=[1.5, 2.5], b=1:2, value=1:2)))
    @test says("a column is a vector", () -> Tensor((a=1:3, b=2, value=1:3)))
    @test says("no index columns", () -> Tensor((value=1:3,)))
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
    @test says("k is -2; it is an integer of at least 0", () -> clusters(model, :film; k=-2))
    @test says("k is 2.5; it is an integer", () -> clusters(model, :film; k=2.5))
    @test says("trials is 0", () -> tune(ratings(); trials=0))
    @test says("rungs is 0", () -> tune(ratings(); rungs=0))
    @test says("valid_fraction is 1", () -> tune(ratings(); valid_fraction=1))
end

@testset "matrices" begin
    @test says("the weight of a matrix is Inf", () -> CoupledMatrix(2, kinds; weight=Inf))
    @test says("the penalty of a matrix is -1", () -> CoupledMatrix(2, kinds; penalty=-1))
    @test says("zeros is 0", () -> CoupledMatrix(2, kinds; kind=:sampled, zeros=0))
    @test says("the weight of a matrix is -1.0", () -> fold_in(quick_fit(; matrices=[2 => kinds]), 2; matrices=[(1, kinds, -1.0)]))
    @test says("CoupledMatrix(mode, data)", () -> Problem(ratings(); matrices=[kinds]))
    @test thrown(() -> Problem(ratings(); matrices=[5 => kinds])) isa ArgumentError
    @test thrown(() -> fit(ratings(); rank=2, matrices=[CoupledMatrix(2, (1:2, 1:2, [1.0, NaN]); kind=:observed, weight=1)])) isa S3CMTFError
    @test thrown(() -> Problem(ratings(dims=(60, 40, 6)); matrices=[2 => (1:50, ones(Int, 50), ones(50))])) isa S3CMTFError
    @test says("a column of rows, one of columns and one of values", () -> Problem(Tensor(ratings_table); matrices=[:film => (film=["a"], value=[1.0])]))
end

@testset "files and texts" begin
    @test thrown(() -> load("absent.s3m")) isa S3CMTFError
    @test thrown(() -> save(model, joinpath("absent", "folder", "x.s3m"))) isa S3CMTFError
    @test thrown(() -> save(ratings(), "nul\0byte.coo")) isa ArgumentError
    @test statusname(S3CMTFError(3, "x")) == "S3CMTF_BAD_ARGUMENT"
    @test sprint(showerror, S3CMTFError(3, "x")) == "S3CMTFError: x (S3CMTF_BAD_ARGUMENT)"
end
