# Tensors from arrays: all forms of indices have the same entries.
entries(tensor) = ([collect(indices(tensor, mode)) for mode in 1:ndims(tensor)], collect(values(tensor)))
same(tensor) = entries(tensor) == entries(ratings())

@test size(ratings()) == (60, 40, 6)
@test size(ratings(), :film) == 40
@test ndims(ratings()) == 3 && nnz(ratings()) == 600
@test entries(ratings()) == ([users, films, months], stars)
@test values(ratings()) isa AbstractVector{Float32}
@test values(Tensor((users, films, months), Float64.(stars))) isa AbstractVector{Float64}
@test indices(ratings(), 2) isa AbstractVector{Int}

@testset "index types" begin
    for T in (Int32, UInt32, Int64, UInt64, Int16, UInt8)
        @test same(Tensor((T.(users), T.(films), T.(months)), stars))
    end
    @test same(Tensor((users, Int32.(films), UInt8.(months)), stars))
    @test same(Tensor([users, films, months], stars))
    @test same(Tensor([users films months], stars))
    @test same(Tensor(Int32[users films months], stars))
    @test same(Tensor(collect(zip(users, films, months)), stars))
    @test same(Tensor([UInt32.((u, f, m)) for (u, f, m) in zip(users, films, months)], stars))
    @test same(Tensor([CartesianIndex(cell) for cell in zip(users, films, months)], stars))
    @test same(Tensor((users, films, months, stars)))
    @test same(Tensor((users .- 1, films .- 1, months .- 1), stars; base=0))
    # Views with a stride, ranges and generic vectors are copied.
    doubled = repeat(users; inner=2)
    @test same(Tensor((view(doubled, 1:2:1200), films, months), view(repeat(stars; inner=2), 1:2:1200)))
    @test collect(indices(Tensor((1:3, 3:-1:1), ones(3)), 2)) == [3, 2, 1]
    @test collect(values(Tensor((1:3, 1:3), [1, 2, 3]))) == [1.0, 2.0, 3.0]
    @test collect(values(Tensor((1:2, 1:2), Union{Missing,Float32}[1, 2]))) == [1.0, 2.0]
end

@testset "sizes" begin
    @test size(Tensor((users, films, months), stars; dims=(100, 50, 12))) == (100, 50, 12)
    @test message(() -> Tensor((users, films, months), stars; dims=(100, 39, 12))) |> text -> occursin("mode 2", text)
end

@testset "sparse matrices" begin
    matrix = sparse([1, 3, 3], [2, 1, 4], [0.5, 1.5, 2.5], 5, 6)
    tensor = Tensor(matrix)
    @test size(tensor) == (5, 6) && nnz(tensor) == 3
    @test sparse(indices(tensor, 1), indices(tensor, 2), values(tensor), 5, 6) == matrix
    @test size(Tensor(spzeros(Float32, 4, 3))) == (4, 3)
end

@testset "weights" begin
    @test weights(ratings()) === nothing
    tensor = ratings(weights=fill(0.5, 600))
    @test weights(tensor) == fill(0.5, 600)
    other = weighted(ratings(), Float32.(1:600))
    @test weights(other) == 1:600 && weights(other) isa AbstractVector{Float32}
    by = weighted(ratings(), Tensor((users, films, months), 2 .* stars))
    @test weights(by) == 2 .* stars
    # A weight of 2 equals an entry listed twice.
    half = [i <= 300 ? 2.0 : 1.0 for i in 1:600]
    twice = [1:300; 1:600]
    a = quick_fit(ratings(weights=half); algorithm=:als, start=:paper)
    b = quick_fit(Tensor((users[twice], films[twice], months[twice]), stars[twice]); algorithm=:als, start=:paper)
    @test predict(a, (1, 1, 1)) ≈ predict(b, (1, 1, 1)) rtol = 0.02
end

@testset "without a copy" begin
    zero_based = UInt32.(users .- 1), UInt32.(films .- 1), UInt32.(months .- 1)
    numbers = copy(stars)
    tensor = Tensor(zero_based, numbers; dims=(60, 40, 6), base=0, copy=false)
    @test same(tensor)
    @test pointer(values(tensor).memory) == pointer(numbers)
    # The arrays stay in place although nothing else refers to them.
    model = let tensor = Tensor(map(copy, zero_based), copy(stars); dims=(60, 40, 6), base=0, copy=false)
        GC.gc()
        quick_fit(tensor)
    end
    GC.gc()
    @test factor(model, 1) == factor(quick_fit(), 1)
    # Resizing an array is an error or leaves the memory of the tensor in place, depending on the version of Julia.
    thrown(() -> push!(numbers, 1))
    @test same(tensor)
    @test occursin("dims", message(() -> Tensor(zero_based, stars; base=0, copy=false)))
    for bad in (map(column -> Int.(column), zero_based), map(column -> view(column, 1:600), zero_based), collect(zip(zero_based...)))
        @test occursin("Vector{UInt32}", message(() -> Tensor(bad, stars; dims=(60, 40, 6), base=0, copy=false)))
    end
    @test occursin("Vector{UInt32}", message(() -> Tensor(zero_based, view(stars, 1:600); dims=(60, 40, 6), base=0, copy=false)))
end

@testset "checks" begin
    @test all(==(0), values(check(ratings())))
    bad = Tensor(([1, 1, 2], [1, 1, 2]), [1.0, 2.0, NaN])
    @test check(bad).not_finite == 1
    @test check(bad).duplicate_cells == 1 && check(bad).surplus_entries == 1
    facts = summarize(ratings())
    @test facts.min == 2 && facts.max == 5 && facts.rows_used == [60, 40, 6]
    @test facts.mean ≈ sum(stars) / 600
end
