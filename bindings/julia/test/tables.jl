# Column tables, and names of rows.

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
    reordered = Tensor(map(reverse, table))
    @test occursin("like=", message(() -> evaluate(model, reordered)))
end
