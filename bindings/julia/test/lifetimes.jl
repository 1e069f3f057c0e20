# Closed objects, views, copies and serialization.
@testset "use after close" begin
    tensor, model = ratings(), quick_fit()
    close(tensor)
    close(model)
    for use in (() -> nnz(tensor), () -> size(tensor), () -> values(tensor), () -> fit(tensor), () -> save(tensor, "x.coo"),
        () -> predict(model, (1, 1, 1)), () -> factor(model, 1), () -> save(model, "x.s3m"), () -> similar(model, 1, 1),
        () -> clusters(model, 1; k=2), () -> history(model), () -> fit(ratings(); init=model))
        failure = thrown(use)
        @test failure isa S3CMTFError && occursin("closed", failure.message)
    end
    @test !isopen(tensor) && !isopen(model)
    close(model)
end

@testset "views keep the memory" begin
    expected = Array(factor(quick_fit(), 1))
    model = quick_fit()
    view = factor(model, 1)
    close(model)
    GC.gc()
    @test view == expected
    views = [factor(quick_fit(), 1) for _ in 1:3]
    GC.gc()
    GC.gc()
    @test all(==(expected), views)
    numbers = values(ratings())
    GC.gc()
    @test numbers == stars
end

@testset "objects that need others" begin
    problem = let tensor = ratings(), matrix = Tensor(kinds)
        problem = Problem(tensor; matrices=[CoupledMatrix(2, matrix; kind=:full, weight=1)])
        close(tensor)
        close(matrix)
        problem
    end
    @test quick_fit(problem) isa Model
    run = FitProgress(problem; rank=2, epochs=3)
    close(problem)
    @test fetch(run) isa Model
end

@testset "copies and serialization" begin
    model = quick_fit()
    other = deepcopy(model)
    close(deepcopy(ratings()))
    @test predict(other, (1, 1, 1)) == predict(model, (1, 1, 1))
    # A copy is closed by itself, and keeps the object.
    close(model)
    third = deepcopy(other)
    close(other)
    GC.gc()
    @test !isopen(model) && !isopen(other) && isopen(third) && isfinite(predict(third, (1, 1, 1)))
    pair = deepcopy([third, third])
    @test pair[1].handle === pair[2].handle !== third.handle
    foreach(close, [third; pair])
    @test third.handle.owner.pointer == C_NULL
    @test !isopen(deepcopy(third)) && occursin("closed", message(() -> predict(deepcopy(third), (1, 1, 1))))
    model = quick_fit()
    for object in (model, ratings(), Problem(ratings()))
        failure = thrown(() -> serialize(IOBuffer(), object))
        @test failure isa S3CMTFError && occursin("save()", failure.message)
    end
    # A view is serialized as an array.
    buffer = IOBuffer()
    serialize(buffer, factor(model, 1))
    @test deserialize(seekstart(buffer)) == factor(model, 1)
    @test deepcopy(factor(model, 1)) == factor(model, 1)
end

@testset "memory is released" begin
    memory() = parse(Int, split(read("/proc/self/statm", String))[2]) * 4096
    if isfile("/proc/self/statm")
        many = rand(UInt32(1):UInt32(1000), 1_000_000)
        large() = Tensor((many, many), zeros(Float32, length(many)))
        foreach(_ -> close(large()), 1:3)
        before = memory()
        foreach(_ -> close(large()), 1:40)
        @test memory() - before < 150_000_000
        foreach(_ -> (large(); GC.gc(false)), 1:40)
        GC.gc()
        @test memory() - before < 400_000_000
    end
end
