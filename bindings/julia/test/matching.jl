# Rows of several inputs are matched by name if both have names, otherwise by number.
using Logging

const film_names = string.("film ", 1:40)
const other_rows = randperm(MersenneTwister(1), 40)

# A tensor with names of rows, as of a file with files of names beside it.
named(tensor, names...) = Tensor(tensor.handle, tensor.modes,
    S3CMTF.ModeLabels[list === nothing ? nothing : S3CMTF.Labels(list) for list in names], tensor.arrays)

"The same entries with other row numbers, and their names, from a file."
function shuffled(folder, tensor, sides=[2])
    columns = Vector{Int}[indices(tensor, mode) for mode in 1:ndims(tensor)]
    names = Any[labels(tensor, mode) for mode in 1:ndims(tensor)]
    for side in sides
        columns[side] = other_rows[columns[side]]
        names[side] = names[side][invperm(other_rows)]
    end
    path = joinpath(mktempdir(folder), "shuffled.coo")
    save(named(Tensor(Tuple(columns), collect(values(tensor)); dims=size(tensor)), names...), path)
    return Tensor(path)
end

const with_films = (nothing, film_names, nothing)
train = named(ratings(; dims=(60, 40, 6)), with_films...)
some = 1:7:600
held_out = named(Tensor((users[some], films[some], months[some]), stars[some] .+ 0.25f0; dims=(60, 40, 6), modes=(:user, :film, :month)), with_films...)
genres = named(Tensor(kinds[1:2], kinds[3]; dims=(40, 2)), film_names, ["odd", "even"])
pairs_of_films = named(Tensor((1:38, 3:40), ones(38); dims=(40, 40)), film_names, film_names)
coupled_with(matrix=genres, graph=pairs_of_films) = [CoupledMatrix(2, matrix; kind=:full, weight=1), Graph(2, graph; weight=0.1)]
of_names(data=train; options...) = fit(data; algorithm=:blocked, model=:cp, rank=2, epochs=5, seed=1, options...)
errors_of(data=train; options...) = record(@test_logs min_level=Logging.Info of_names(data; options...))
numbers_of(found) = [found.train_rmse, found.valid_rmse, found.test_rmse]

mktempdir() do folder
    @testset "the order of names does not matter" begin
        expected = numbers_of(errors_of(; matrices=coupled_with(), test=held_out, valid=held_out))
        @test all(isfinite, expected)
        graphs = (shuffled(folder, pairs_of_films, [1, 2]), shuffled(folder, pairs_of_films))
        for matrices in (coupled_with(shuffled(folder, genres, [1])), coupled_with(genres, graphs[1]), coupled_with(genres, graphs[2]))
            @test numbers_of(errors_of(; matrices=matrices, test=held_out, valid=held_out)) ≈ expected rtol = 1e-5
        end
        @test numbers_of(errors_of(; matrices=coupled_with(), test=shuffled(folder, held_out), valid=held_out)) == expected
        @test numbers_of(errors_of(; matrices=coupled_with(), test=held_out, valid=shuffled(folder, held_out))) == expected
    end

    @testset "a model that was read from a file" begin
        path = joinpath(folder, "model.s3m")
        save(of_names(; matrices=coupled_with()), path)
        model, other = load(path), shuffled(folder, held_out)
        @test_logs min_level=Logging.Info begin
            @test predict(model, other) == predict(model, held_out)
            @test evaluate(model, other) == evaluate(model, held_out)
            ranking(test, train) = evaluate_ranking(model, test, train; mode=2, user_mode=1)
            @test ranking(other, shuffled(folder, train)) == ranking(held_out, train)
            lists = [recommend(model, 2; given=1 => 3, exclude=data).rows for data in (train, shuffled(folder, train))]
            @test lists[1] == lists[2]
            @test clusters(model, 2; k=2, matrices=[shuffled(folder, genres, [1])]).information == clusters(model, 2; k=2, matrices=[genres]).information
            new(film, names) = named(Tensor((fill(61, 9), film, ones(Int, 9)), 1.0:9.0), nothing, names, nothing)
            folded = [fold_in(model, 1; tensor=data).model for data in (new(1:9, film_names), new(9:-1:1, film_names[9:-1:1]))]
            @test factor(folded[1], 1) == factor(folded[2], 1)
        end
    end
    model = of_names()

    @testset "rows that only one side has" begin
        more = (film=["film 3", "film 4", "new"], kind=["odd", "even", "odd"], value=ones(3))
        report = r"^mode film: rows are matched by name: 2 in both the tensor and matrix 1, 38 only in the tensor, 1 only in matrix 1 \(such as \"new\"\), appended to the mode$"
        unsized = named(ratings(), with_films...)
        extended = @test_logs (:info, report) of_names(unsized; matrices=[CoupledMatrix(2, more; kind=:full, weight=1)])
        @test last(labels(extended, 2)) == "new" && 41 in rows(extended, 2)
        # From a file, whose sizes are those of its indices.
        save(unsized, joinpath(folder, "unsized.coo"))
        @test size(of_names(Tensor(joinpath(folder, "unsized.coo")); matrices=[CoupledMatrix(2, more; kind=:full, weight=1)]), 2) == 41
        part = named(Tensor((1:2, 1:2, 1:2), [1.0, 2.0]), nothing, ["film 3", "new"], nothing)
        unknown = r": 1 in both .*, 39 only in the .*, 1 only in \w+ \(such as \"new\"\), unseen: they count as the mean row$"
        @test_logs (:info, unknown) of_names(; test=part)
        @test (@test_logs (:info, unknown) predict(model, part))[2] == predict(model, (2, 1000, 2))
        @test_logs (:info, unknown) evaluate(model, (user=[1, 2], film=["film 3", "new"], month=[1, 2], stars=[1, 2]))
    end

    @testset "no name in common" begin
        none = named(Tensor((1:2, 1:2, 1:2), [1.0, 2.0]), nothing, ["x", "y"], nothing)
        matrix = (film=["x", "y"], kind=["odd", "even"], value=ones(2))
        graph = (film=["x", "y"], other=["y", "x"], value=ones(2))
        says(known, what, f) = message(f) == "ArgumentError: mode film: the $known and $what have no name in common; names are such as " *
            "\"film 1\" in the $known and \"x\" in $what"
        @test says("tensor", "matrix 1", () -> Problem(train; matrices=[2 => matrix]))
        @test says("tensor", "matrix 1", () -> Problem(train; matrices=[Graph(2, graph)]))
        @test says("tensor", "test", () -> of_names(; test=none))
        @test says("tensor", "valid", () -> of_names(; valid=none))
        @test says("tensor", "valid", () -> tune(train; valid=none))
        @test says("model", "cells", () -> predict(model, none))
        @test says("model", "data", () -> evaluate(model, none))
        @test says("model", "train", () -> evaluate_ranking(model, train, none; mode=2, user_mode=1))
        @test says("model", "exclude", () -> recommend(model, 2; given=1 => 1, exclude=none))
        @test says("model", "tensor", () -> fold_in(model, 1; tensor=none))
        @test says("model", "matrix 1", () -> clusters(model, 2; k=2, matrices=[matrix]))
    end

    @testset "names on one side" begin
        bare, numbers = ratings(; dims=(60, 40, 6)), Tensor(kinds)
        by_number(named, other) = (:warn, "mode film: there are names in $named and none in $other; rows are matched by number")
        one = @test_logs by_number("the tensor", "matrix 1") of_names(; matrices=[CoupledMatrix(2, numbers; kind=:full, weight=1)])
        two = @test_logs by_number("matrix 1", "the tensor") of_names(bare; matrices=[CoupledMatrix(2, genres; kind=:full, weight=1)])
        both = of_names(bare; matrices=[CoupledMatrix(2, numbers; kind=:full, weight=1)])
        @test factor(one, 2) == factor(two, 2) == factor(both, 2)
        @test labels(one, 2) == film_names && labels(two, 2) === nothing
        @test_logs by_number("the tensor", "test") of_names(; test=bare)
        @test_logs by_number("valid", "the tensor") of_names(bare; valid=train)
        @test_logs by_number("the tensor", "init") of_names(; init=both)
        @test_logs by_number("the model", "cells") predict(model, bare)
        @test_logs by_number("data", "the model") evaluate(both, train)
    end

    @testset "no names" begin
        @test occursin("the matrix has 50 rows, but mode film has 40", message(() -> Problem(ratings(; dims=(60, 40, 6)); matrices=[2 => Tensor((1:50, 1:50), ones(50))])))
    end

    @testset "a name of two rows" begin
        twice = [film_names[1:5]; "film 3"; film_names[7:end]]
        of(names) = named(ratings(; dims=(60, 40, 6)), nothing, names, nothing)
        errors_of(of(twice); test=of(copy(twice)))
        why(source, f) = occursin("cannot be matched by name, because in $source rows 3 and 6 are both called \"film 3\"", message(f))
        @test why("the tensor", () -> of_names(of(twice); test=of(reverse(twice))))
        @test why("test", () -> of_names(; test=of(twice)))
        @test why("the model", () -> evaluate(of_names(of(twice)), train))
        @test why("matrix 1", () -> Problem(train; matrices=[Graph(2, named(Tensor((1:38, 3:40), ones(38)), film_names, twice))]))
        @test occursin("in test row 6 has no name", message(() -> of_names(; test=of(film_names[1:5]))))
    end
end
