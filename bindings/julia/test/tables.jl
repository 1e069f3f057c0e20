# Column tables, and names of rows.
using Logging

# As a data frame: properties are vectors.
struct Frame
    user::Vector{Int}
    film::Vector{String}
    month::Vector{String}
    stars::Vector{Float32}
end

table = ratings_table
tensor = Tensor(table)
@test size(tensor) == (60, 40, 6)
@test tensor.modes == [:user, :film, :month]
@test labels(tensor, :user) === nothing
@test labels(tensor, :film)[1:2] == ["film 1", "film 4"]
@test collect(indices(tensor, :user)) == users
@test labels(tensor, :film)[indices(tensor, :film)] == table.film
@test collect(values(tensor)) == stars

@testset "forms of tables" begin
    same(other) = labels(other, :film)[indices(other, :film)] == table.film && collect(values(other)) == stars
    @test same(Tensor([(; user=u, film=f, month=m, stars=s) for (u, f, m, s) in zip(table...)]))
    @test same(Tensor(Dict(pairs(table)); columns=(:user, :film, :month), value=:stars))
    @test same(Tensor(Dict(string(k) => v for (k, v) in pairs(table)); columns=("user", "film", "month"), value="stars"))
    @test same(Tensor(Frame(table...)))
    # Symbols and other values are names as well.
    @test labels(Tensor((a=[:x, :y, :x], b=['p', 'q', 'p'], value=1:3)), 2) == ["p", "q"]
    @test labels(Tensor((a=Any[1, 2, 1], b=Any["p", "q", "p"], value=1:3)), 1) === nothing
    @test labels(Tensor((a=[true, false, true], b=1:3, value=1:3)), 1) == ["true", "false"]
end

@testset "roles of columns" begin
    more = merge(table, (weight=fill(2.0, 600), note=fill("x", 600)))
    chosen = Tensor(more; columns=[:user, :film, :month], value=:stars, weight=:weight)
    @test ndims(chosen) == 3 && weights(chosen) == fill(2.0, 600)
    @test Tensor((value=[1.0, 2.0], i=[1, 2], j=[1, 1])).modes == [:i, :j]
    @test Tensor((i=[1, 2], j=[1, 1], x=[1.0, 2.0])).modes == [:i, :j]
    @test occursin("there is no column :start", message(() -> Tensor(table; value=:start)))
    @test occursin("there is no column :filn", message(() -> Tensor(table; columns=[:user, :filn])))
end

@testset "names" begin
    ids = Tensor((film=[50, 7, 50], month=[1, 2, 1], value=[1.0, 2.0, 3.0]); strings=[:film])
    @test labels(ids, :film) == ["50", "7"] && size(ids) == (2, 2)
    # A table like another one has the same rows; new names follow.
    later = Tensor((film=[7, 8], month=[1, 3], value=[1.0, 2.0]); like=ids)
    @test labels(later, :film) == ["50", "7", "8"]
    @test collect(indices(later, :film)) == [2, 3]
    @test labels(ids, :film) == ["50", "7"]
end

@testset "names of a model" begin
    model = quick_fit(tensor)
    @test predict(model, (1, "film 4", "month 1")) == predict(model, (1, 2, 1))
    cells = (user=[1, 2], film=["film 4", "film 1"], month=["month 1", "month 2"])
    @test predict(model, cells) == predict(model, ([1, 2], [2, 1], [1, 2]))
    @test predict(model, merge(cells, (stars=[1, 2],))) == predict(model, cells)
    @test evaluate(model, table).rmse ≈ evaluate(model, tensor).rmse
    @test occursin("has no row \"film 99\"", message(() -> predict(model, (1, "film 99", 1))))
    @test occursin("similar names", message(() -> predict(model, (1, "film 99", 1))))
    @test occursin("mode user has no names", message(() -> predict(model, ("anna", 1, 1))))
    # In a table an unknown name is an unknown row.
    unknown = predict(model, (user=[1], film=["new film"], month=["month 1"]))
    @test unknown == predict(model, ([1], [41], [1]))
    # Columns are found by the names of the modes, in any order.
    @test predict(model, NamedTuple{(:month, :film, :user)}(cells)) == predict(model, cells)
    @test evaluate(model, NamedTuple{(:stars, :month, :film, :user)}(table)) == evaluate(model, table)
    renamed = (user=cells.user, movie=cells.film, month=cells.month)
    @test occursin("there is no column film", message(() -> predict(model, renamed)))
    @test occursin("there is no column film", message(() -> evaluate(model, merge(renamed, (stars=[1, 2],)))))
    @test occursin("there is no column film", message(() -> fit(tensor; test=merge(renamed, (stars=[1, 2],)))))
    @test occursin("no value column", message(() -> evaluate(model, cells)))
    @test occursin("the rows of mode user are numbers", message(() -> predict(model, merge(cells, (user=["anna", "bert"],)))))
    reordered = Tensor(map(reverse, table))
    @test occursin("like=", message(() -> evaluate(model, reordered)))
end

@testset "names of modes" begin
    mktempdir() do folder
        path = joinpath(folder, "films.s3m")
        model = quick_fit(tensor)
        cells = (month=["month 1", "month 2"], user=[1, 2], film=["film 4", "film 1"])
        save(model, path)
        @test load(path).modes == [:user, :film, :month] && predict(load(path), cells) == predict(model, cells)
        @test occursin("there is no column film", message(() -> predict(load(path), (month=["month 1"], user=[1], movie=["film 4"]))))
        # Without names of the modes, columns are found by their order.
        rm(path * ".modes.tsv")
        unnamed = load(path)
        @test unnamed.modes == [:mode1, :mode2, :mode3]
        ordered = (a=[1, 2], b=["film 4", "film 1"], c=["month 1", "month 2"])
        @test predict(unnamed, ordered) == predict(model, cells)
        swapped = (a=ordered.a, b=ordered.c, c=ordered.b)
        @test occursin("none of the 2 names in column b occur in mode mode2", message(() -> predict(unnamed, swapped)))
        @test occursin("none of the 2 names in column b", message(() -> evaluate(unnamed, merge(swapped, (stars=[1, 2],)))))
        @test fold_in(unnamed, 2; tensor=(a=[1, 2], b=["new", "new"], c=ordered.c, stars=[5, 2])).added == 1
        # A model whose modes have no names removes those of the model it replaces.
        save(model, path)
        save(unnamed, path)
        @test !isfile(path * ".modes.tsv") && load(path).modes == unnamed.modes
        mixed = Tensor(ordered.a |> a -> (a, a, a), [1.0, 2.0]; modes=(:user, :mode2, Symbol("a\tb")))
        save(quick_fit(mixed), path)
        @test load(path).modes == mixed.modes
        # Another program may replace the model without the names of its modes.
        names = read(path * ".modes.tsv")
        save(unnamed, path)
        for text in (names, "", "index\tname\n1\ta\n2\tb\n3\tc\n")
            write(path * ".modes.tsv", text)
            @test_logs (:warn, r"ignored: they were saved with another model") load(path)
            @test with_logger(() -> load(path), NullLogger()).modes == unnamed.modes
        end
    end
end
