# Recommendations, similar rows, concepts, clusters.
genres = (film=string.("film ", 1:40), genre=[isodd(i) ? "odd" : "even" for i in 1:40], value=ones(40))
model = fit(Tensor(ratings_table); model=:cp, rank=3, epochs=20, seed=1, matrices=[CoupledMatrix(:film, genres; kind=:full, weight=1)])

@testset "recommend" begin
    list = recommend(model, :film; given=(user=2, month="month 1"), top=5)
    @test length(list) == 5 && issorted(list.scores; rev=true)
    @test list.names == labels(model, :film)[list.rows]
    # User 2 likes the even films.
    @test all(name -> iseven(parse(Int, split(name)[2])), list.names)
    @test list.scores[1] ≈ predict(model, ([2], [list.rows[1]], [1]); clip=false)[1] rtol = 1e-5
    lists = recommend(model, :film; given=:user => [1, 2, 3], top=4)
    @test length(lists) == 3 && lists[2].rows == recommend(model, 2; given=[1 => 2], top=4).rows
    unseen = recommend(model, :film; given=(user=2,), exclude=ratings_table, top=40)
    seen = labels(model, :film)[[row for row in indices(Tensor(ratings_table), :film)[users.==2]]]
    @test isempty(intersect(unseen.names, seen)) && length(unseen) == 40 - length(unique(seen))
    @test recommend(model, :film; given=(user=2,), candidates=["film 2", "film 4"]).names ⊆ ["film 2", "film 4"]
    @test !("film 2" in recommend(model, :film; given=(user=2,), exclude_rows=["film 2"], top=40).names)
    @test length(recommend(model, :film; given=(user=2,), candidates=String[])) == 0
    @test_throws ArgumentError recommend(model, :film; given=(film=1,))
    @test_throws ArgumentError recommend(model, :film; given=())
    @test_throws ArgumentError recommend(model, :film; given=(user=0,))
    @test_throws DimensionMismatch recommend(model, :film; given=(user=[1, 2], month=[1, 2, 3]))
    @test thrown(() -> recommend(model, :film; given=(user=1000,))) isa S3CMTFError
    @test thrown(() -> recommend(model, :film; given=(user=1,), quantile=0.1)) isa S3CMTFError
end

@testset "similar" begin
    list = similar(model, :film, "film 2"; top=5)
    @test length(list) == 5 && !("film 2" in list.names)
    @test all(name -> iseven(parse(Int, split(name)[2])), list.names)
    @test length(similar(model, :film, ["film 2", "film 3"])) == 2
    @test similar(model, 1, 4; top=3).names === nothing
    @test_throws ArgumentError similar(model, 1, 0)
    @test_throws ArgumentError similar(model, 1, 1; top=0)
    @test_throws ArgumentError recommend(model, :film; given=(user=1,), top=-1)
    @test_throws ArgumentError similar(model, :film, "film 41")
end

@testset "concepts" begin
    found = concepts(model, :film; top=4)
    @test length(found) == 3 && issorted([concept.strength for concept in found]; rev=true)
    concept = found[1]
    @test length(concept.largest) == 4 && concept.largest.names == labels(model, :film)[concept.largest.rows]
    @test 1 <= concept.column <= 3
    @test Set(column.name for column in [concept.largest_columns; concept.smallest_columns]) ⊆ Set(["odd", "even"])
    # The loading is the number in the factor column, up to scale and sign.
    sign = concept.sign_flipped ? -1 : 1
    numbers = sign .* factor(model, :film)[:, concept.column]
    @test argmax(numbers) == concept.largest.rows[1]
    given = concepts(model, :film; given=(user=2,))
    @test given.profile_mode === :month && size(given.profile) == (3, 3)
    @test concepts(model, :film).profile === nothing
    @test_throws ArgumentError concepts(model, :film; given=(user=0,))
end

@testset "clusters" begin
    found = clusters(model, :film; k=2, matrices=[genres], seed=1)
    @test length(found) == 2 && found[1].rows + found[2].rows == 40
    @test found.rows == 1:40 && Set(found.assignment) == Set([1, 2])
    @test count(==(1), found.assignment) == found[1].rows
    # Even and odd films.
    parity = [parse(Int, split(name)[2]) % 2 for name in labels(model, :film)]
    @test length(unique(zip(parity, found.assignment))) == 2
    @test found[1].labels[1].lift ≈ 2 && found[1].labels[1].name in ("odd", "even")
    @test found.information[1] ≈ 1 && 0 < found.explained_variance <= 1
    @test length(found[1].centre) == 3 && length(found[1].members) == 10
    chosen = clusters(model, :film; max_k=4, references=5)
    @test length(chosen.gap) == 4 && chosen.gap[2].clusters == 2
    @test isempty(found.gap) && clusters(model, 1; k=2, space=:columns) isa AbstractVector
    @test_throws ArgumentError clusters(model, :film; k=2, space=:rows)
    @test clusters(model, :film; k=2, matrices=(kinds,)) isa AbstractVector
end
