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
    @test Tensor((i=[1, 2], j=[1, 1], x=[1.0, 2.0]); value=:x).modes == [:i, :j]
    @test occursin("there is no column :start", message(() -> Tensor(table; value=:start)))
    @test occursin("there is no column :filn", message(() -> Tensor(table; columns=[:user, :filn])))
end

@testset "value columns" begin
    of(table; options...) = collect(values(Tensor(table; options...)))
    ratings = (user=[1, 2], film=[1, 1], rating=[3.5, 4.0], time=[847117005, 841000000])
    for name in ("rating", "VALUE", "Stars", "score", " count ")
        renamed = NamedTuple{(:user, :film, Symbol(name), :time)}(Tuple(ratings))
        @test of(renamed; columns=(:user, :film)) == [3.5, 4.0]
        @test of(renamed; weight=:time) == [3.5, 4.0]
    end
    # The only column that is left, or the only one with numbers.
    @test of((user=[1, 2], film=[1, 1], x=[3, 4]); columns=(:user, :film)) == [3, 4]
    @test of((user=[1, 2], x=[3, 4], w=[1.0, 2.0], film=[1, 1]); columns=(:user, :film), weight=:w) == [3, 4]
    @test of((user=["a", "b"], x=[3, 4], film=["c", "d"])) == [3, 4]
    text = message(() -> Tensor((user=[1, 2], film=[1, 1], x=[3, 4])))
    @test occursin("user, film, x have numbers, and none is called rating, value, stars, score or count", text)
    @test occursin("value=:x", text)
    @test occursin("rating, score may have them", message(() -> Tensor((user=["a", "b"], rating=[1, 1], score=[3, 4]))))
    @test occursin("none of user, film has numbers", message(() -> Tensor((user=["a", "b"], film=["c", "d"]))))
    matrix = (film=[1, 2], genre=["c", "d"], x=[3, 4])
    @test occursin("film, x have numbers", message(() -> Problem(tensor; matrices=[:film => matrix])))
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
    unknown = predict(model, (user=[1, 1], film=["new film", "film 1"], month=["month 1", "month 1"]))
    @test unknown == predict(model, ([1, 1], [41, 1], [1, 1]))
    # Columns are found by the names of the modes, in any order.
    @test predict(model, NamedTuple{(:month, :film, :user)}(cells)) == predict(model, cells)
    @test evaluate(model, NamedTuple{(:stars, :month, :film, :user)}(table)) == evaluate(model, table)
    renamed = (user=cells.user, movie=cells.film, month=cells.month)
    @test occursin("there is no column film", message(() -> predict(model, renamed)))
    @test occursin("there is no column film", message(() -> evaluate(model, merge(renamed, (stars=[1, 2],)))))
    @test occursin("there is no column film", message(() -> fit(tensor; test=merge(renamed, (stars=[1, 2],)))))
    @test occursin("no value column", message(() -> evaluate(model, cells)))
    by_number = (:warn, "mode user: there are names in cells and none in the model; rows are matched by number")
    @test (@test_logs by_number predict(model, merge(cells, (user=["anna", "bert"],)))) == predict(model, cells)
    @test evaluate(model, Tensor(map(reverse, table))).rmse ≈ evaluate(model, table).rmse
end

@testset "only own files of names are replaced" begin
    mktempdir() do folder
        path, target = joinpath(folder, "films.s3m"), joinpath(folder, "target")
        coupled = (film=string.("film ", 1:40), kind=[isodd(i) ? "odd" : "even" for i in 1:40], value=ones(40))
        model = quick_fit(tensor; matrices=[CoupledMatrix(:film, coupled; kind=:full, weight=1)])
        for ending in (".mode2.tsv", ".modes.tsv", ".matrix1.tsv"), text in ("index\tname\n1\tmine\n", "precious", nothing)
            names = path * ending
            rm(names; force=true)
            text === nothing ? rm(target; force=true) : write(target, text)
            symlink(target, names)
            @test_logs (:warn, r"is now called .*\.old") match_mode=:any save(model, path)
            @test isfile(names) && !islink(names) && islink(names * ".old")
            @test (isfile(target) ? read(target, String) : nothing) == text
            foreach(rm, (names, names * ".old"))
            mkdir(names)
            with_logger(() -> save(model, path), NullLogger())
            @test isfile(names) && isdir(names * ".old")
            foreach(rm, (names, names * ".old"))
            # A pipe, which is not read, and a file of another program.
            run(`mkfifo $names`)
            with_logger(() -> save(model, path), NullLogger())
            @test isfile(names) && isfifo(names * ".old")
            write(names, "precious")
            with_logger(() -> save(model, path), NullLogger())
            @test startswith(read(names, String), "index\tname") && read(names * ".old2", String) == "precious"
            foreach(rm, (names * ".old", names * ".old2"))
        end
        # Names beside a tensor.
        write(target, "index\tname\n1\tmine\n")
        symlink(target, joinpath(folder, "films.mode2.tsv"))
        @test_logs (:warn, r"is now called .*films\.mode2\.tsv\.old") save(tensor, joinpath(folder, "films.coo"))
        @test islink(joinpath(folder, "films.mode2.tsv.old")) && read(target, String) == "index\tname\n1\tmine\n"
        # A file of another format is what a user calls the rows.
        write(path * ".mode1.tsv", "1\tmine\n")
        save(model, path)
        @test read(path * ".mode1.tsv", String) == "1\tmine\n"
    end
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
        @test occursin("mode mode2: the model and cells have no name in common", message(() -> predict(unnamed, swapped)))
        @test occursin("mode mode2: the model and data have no name in common", message(() -> evaluate(unnamed, merge(swapped, (stars=[1, 2],)))))
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
