# Predictions, intervals, evaluation, new rows.
model = quick_fit(; epochs=20)
gibbs = fit(ratings(); algorithm=:gibbs, model=:cp, rank=2, samples=10, burn_in=4, seed=1)
cells = (users[1:50], films[1:50], months[1:50])

@testset "cells" begin
    expected = predict(model, cells)
    @test expected isa Vector{Float64} && length(expected) == 50
    @test predict(model, hcat(cells...)) == expected
    @test predict(model, collect(zip(cells...))) == expected
    @test predict(model, [CartesianIndex(cell) for cell in zip(cells...)]) == expected
    @test predict(model, map(column -> Int32.(column), cells)) == expected
    @test predict(model, Tensor(cells, stars[1:50])) == expected
    @test predict(model, (user=cells[1], film=cells[2], month=cells[3])) == expected
    @test [predict(model, cell) for cell in zip(cells...)] == expected
    @test predict(model, cells; threads=1) == expected
    @test predict(model, cells; type=Float32) ≈ expected
    @test predict(model, cells; type=Float32) isa Vector{Float32}
    @test all(2 .<= predict(model, cells; clip=true) .<= 5)
    @test expected ≈ stars[1:50] atol = 0.5
    @test predict(model, (Int[], Int[], Int[])) == Float64[]
    # An unknown row is the mean row.
    @test predict(model, ([1000], [1], [1])) == predict(model, ([2000], [1], [1]))
end

@testset "intervals" begin
    result = predict(gibbs, cells; deviation=true, interval=0.9, quantiles=[0.5, 0.05])
    @test keys(result) == (:prediction, :deviation, :lower, :upper, :quantiles)
    @test all(result.deviation .> 0) && all(result.lower .<= result.upper)
    @test size(result.quantiles) == (50, 2) && result.quantiles[:, 2] ≈ result.lower
    @test predict(gibbs, cells; interval=0.5).prediction == predict(gibbs, cells)
    @test predict(gibbs, Tensor(cells, stars[1:50]); deviation=true).deviation == result.deviation
    failure = thrown(() -> predict(model, cells; deviation=true))
    @test failure isa S3CMTFError && occursin("gibbs", failure.message)
    @test_throws ArgumentError predict(gibbs, cells; interval=90)
    @test thrown(() -> predict(gibbs, cells; quantiles=[1.5])) isa S3CMTFError
end

@testset "evaluation" begin
    errors = evaluate(model, ratings())
    predictions = predict(model, ratings(); clip=false)
    @test errors.entries == 600
    @test errors.rmse ≈ sqrt(sum(abs2, predictions .- stars) / 600) rtol = 1e-6
    @test errors.clipped_rmse <= errors.rmse
    @test evaluate(model, (users, films, months, stars)) == errors
    binary = evaluate_binary(model, ratings())
    @test binary.low == 2 && binary.high == 5 && binary.auc > 0.99
    scores = evaluate_distributions(gibbs, ratings())
    @test scores.levels == 2 && 0 <= scores.coverage_90 <= 1
    @test thrown(() -> evaluate_distributions(model, ratings())) isa S3CMTFError
    train, test = Tensor((users[1:500], films[1:500], months[1:500]), stars[1:500]), ratings()
    ranking = evaluate_ranking(quick_fit(train), test, train; mode=2, user_mode=1, top=5, min_relevant_value=4)
    @test 0 <= ranking.ndcg <= 1 && ranking.users > 0
end

@testset "new rows" begin
    # A user who likes the odd films, as users with odd numbers.
    entries = Tensor((fill(61, 10), 1:10, fill(1, 10)), [isodd(f) ? 5.0 : 2.0 for f in 1:10])
    folded = fold_in(model, 1; tensor=entries)
    @test folded.added == 1 && folded.replaced == 0
    @test size(folded.model, 1) == 61 && size(model, 1) == 60
    @test predict(folded.model, (61, 21, 1)) > 4 && predict(folded.model, (61, 22, 1)) < 3
    @test predict(folded.model, (1, 1, 1)) == predict(model, (1, 1, 1))
    @test thrown(() -> fold_in(folded.model, 1; tensor=entries)) isa S3CMTFError
    @test fold_in(folded.model, 1; tensor=entries, replace=true).replaced == 1

    named = quick_fit(Tensor(ratings_table); matrices=[CoupledMatrix(:film,
        (film=string.("film ", 1:40), genre=[isodd(i) ? "odd" : "even" for i in 1:40], value=ones(40)); kind=:full, weight=1)], epochs=20)
    new_film = (film=["new"], genre=["odd"], value=[1.0])
    result = fold_in(named, :film; matrices=[1 => new_film])
    @test result.added == 1 && last(labels(result.model, :film)) == "new"
    @test predict(result.model, (1, "new", "month 1")) > predict(result.model, (2, "new", "month 1"))
    entries = (user=[1, 2], film=["other", "other"], month=["month 1", "month 2"], stars=[5.0, 2.0])
    both = fold_in(named, :film; tensor=entries, matrices=[(1, (film=["other"], genre=["even"], value=[1.0]), 0.5)])
    @test both.added == 1 && last(labels(both.model, :film)) == "other"
    @test predict(both.model, (1, "other", "month 1")) > predict(both.model, (2, "other", "month 1"))
end
