# Coupled matrices of every kind, graphs, and several of them.
with_matrix(matrices; options...) = fit(ratings(); model=:cp, rank=2, epochs=5, seed=1, matrices=matrices, options...)
kind_of(model, number=1) = matrix(model, number)

@testset "kinds" begin
    for kind in (:observed, :full, :sampled, :auto)
        model = with_matrix([CoupledMatrix(:film, kinds; kind=kind, weight=0.5)])
        coupled = kind_of(model)
        @test coupled.mode == 2 && coupled.weight == 0.5 && coupled.columns == 2
        kind === :auto || @test coupled.kind === kind
        @test size(matrix_factor(model, 1)) == (2, 2) && matrix_factor(model, 1) == matrix_factor(Float32, model, 1)
        @test matrix_columns(model, 1) == [1, 2]
        @test length(offsets(model, 1)) in (0, 2)
    end
    @test_throws ArgumentError CoupledMatrix(:film, kinds; kind=:complete)
    @test_throws ArgumentError CoupledMatrix(:film, kinds; kind=:full, zeros=3)
    @test_throws ArgumentError CoupledMatrix(:film, kinds; weight=-1)
    @test kind_of(with_matrix([CoupledMatrix(2, kinds; kind=:sampled, zeros=4, penalty=0.1, weight=1)])).kind === :sampled
end

@testset "forms" begin
    forms = (kinds, sparse(kinds..., 40, 2), Tensor((kinds[1], kinds[2]), kinds[3]),
        (film=kinds[1], kind=kinds[2], value=kinds[3]))
    factors = [Array(factor(with_matrix([CoupledMatrix(:film, data; kind=:full, weight=1)]), 2)) for data in forms]
    @test all(==(factors[1]), factors)
    dense = Matrix(sparse(kinds..., 40, 2))
    for data in (dense, Int.(dense), dense .== 1, view(dense, :, :), copy(dense')', sparse(dense')')
        @test factor(with_matrix([CoupledMatrix(:film, data; kind=:full, weight=1)]), 2) == factors[1]
    end
    # All cells of an observed matrix are listed but those that are unknown.
    rows, columns = repeat(1:40, 2), repeat(1:2; inner=40)
    observed(data) = Array(factor(with_matrix([CoupledMatrix(:film, data; kind=:observed, weight=1)]), 2))
    @test observed(dense) == observed((rows, columns, vec(dense)))
    @test observed([i == 1 ? NaN : dense[i, j] for i in 1:40, j in 1:2]) == observed([i == 1 ? missing : dense[i, j] for i in 1:40, j in 1:2]) ==
        observed((rows[rows.>1], columns[rows.>1], vec(dense)[rows.>1]))
    @test occursin("a matrix has numbers", message(() -> with_matrix([:film => ["a" "b"]])))
    coupled = with_matrix([CoupledMatrix(:film, dense; kind=:full, weight=1)])
    @test fold_in(coupled, :film; matrices=[1 => [zeros(40, 2); 1 0]]).added == 1
    @test clusters(coupled, :film; k=2, matrices=[dense]).information == clusters(coupled, :film; k=2, matrices=[kinds]).information
    @test with_matrix(2 => kinds) isa Model
    @test with_matrix([:film => kinds]) isa Model
    mktempdir() do folder
        path = joinpath(folder, "kinds.coo")
        save(Tensor(kinds), path)
        @test factor(with_matrix([CoupledMatrix(:film, path; kind=:full, weight=1)]), 2) == factors[1]
    end
end

@testset "several, with a graph" begin
    links = (1:5, 2:6, ones(5))
    model = with_matrix([CoupledMatrix(:film, kinds; kind=:full, weight=1), CoupledMatrix(1, (1:60, ones(Int, 60), rand(60)); kind=:observed, weight=0.1),
        Graph(:month, links; weight=0.5)])
    @test info(model).matrices == 3
    @test kind_of(model, 3).kind === :graph && kind_of(model, 3).mode == 3
    @test thrown(() -> matrix_factor(model, 3)) isa S3CMTFError
    @test_throws ArgumentError matrix_factor(model, 4)
end

@testset "names" begin
    table = Tensor(ratings_table)
    genres = (film=[string.("film ", 1:40); "film 99"], genre=[[isodd(i) ? "odd" : "even" for i in 1:40]; "odd"], value=ones(41))
    months_graph = (month=["month 1", "month 2"], other=["month 2", "month 7"], value=[1.0, 1.0])
    problem = Problem(table; matrices=[CoupledMatrix(:film, genres; kind=:full, weight=1), Graph(:month, months_graph; weight=1)])
    model = quick_fit(problem)
    # A film without ratings has a row from its genre.
    @test last(labels(model, :film)) == "film 99" && 41 in rows(model, :film)
    @test last(labels(model, :month)) == "month 7"
    @test labels(table, :film)[end] != "film 99"
    odd, even = predict(model, (2, "film 99", "month 1")), predict(model, (1, "film 99", "month 1"))
    @test isfinite(odd) && isfinite(even)
    @test_logs (:warn, "mode film: there are names in matrix 1 and none in the tensor; rows are matched by number") Problem(ratings(); matrices=[:film => genres])
    @test occursin("has its matrices already", message(() -> fit(problem; matrices=[:film => genres])))
    @test occursin("2 modes", message(() -> Problem(ratings(); matrices=[2 => ratings()])))
    @test occursin("there is no mode :films", message(() -> Problem(ratings(); matrices=[:films => kinds])))
    # A matrix with other names than those of the mode.
    other = (film=["movie 1", "movie 2", "movie 1"], genre=["odd", "even", "even"], value=ones(3))
    @test occursin("mode film: the tensor and matrix 1 have no name in common", message(() -> Problem(table; matrices=[:film => other])))
    @test_logs (:info, r"1 only in matrix 1 \(such as \"film 99\"\), appended to the mode") Problem(table; matrices=[:film => genres])
    part = Tensor((film=["film 1"], genre=["odd"], value=[1.0]))
    @test labels(quick_fit(Problem(table; matrices=[CoupledMatrix(:film, part; kind=:full, weight=1)])), :film) == labels(table, :film)
end
