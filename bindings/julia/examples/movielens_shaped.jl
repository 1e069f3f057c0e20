# A worked example on ratings with the shape of MovieLens: users rate films in months, and films have genres.
#
#   julia --project=bindings/julia bindings/julia/examples/movielens_shaped.jl [FOLDER]
#
# Writes the model and two plots, convergence.svg and films.svg, to the folder (by default the current one).
using S3CMTF, LinearAlgebra, Printf, Random
include("svg.jl")

const genres = ["Action", "Comedy", "Documentary", "Horror", "Romance"]

"Ratings from half a star to five stars by users with a preference for some genres, and the genres of the films."
function simulate(; user_count=700, film_count=300, rating_count=30_000, seed=1)
    rng = MersenneTwister(seed)
    film_names = ["film $i" for i in 1:film_count]
    # One genre per film, and a second one for a third of them.
    film_genres = [unique([rand(rng, 1:5), rand(rng) < 1 / 3 ? rand(rng, 1:5) : 0]) for _ in 1:film_count]
    foreach(list -> filter!(genre -> genre > 0, list), film_genres)
    taste = 0.9 .* randn(rng, user_count, 5)
    quality, severity = 0.5 .* randn(rng, film_count), 0.4 .* randn(rng, user_count)
    popularity = cumsum(1 ./ (1:film_count) .^ 0.7)
    season = [0.3 * cos(2π * month / 12) for month in 1:12]
    table = (user=String[], film=String[], month=Int[], stars=Float32[])
    cells = Set{Tuple{Int,Int}}()
    while length(cells) < rating_count
        user, film = rand(rng, 1:user_count), searchsortedfirst(popularity, rand(rng) * last(popularity))
        (user, film) in cells && continue
        push!(cells, (user, film))
        month = rand(rng, 1:12)
        liking = sum(taste[user, genre] for genre in film_genres[film]) / sqrt(length(film_genres[film]))
        # Horror films are liked more in winter.
        liking += 4 in film_genres[film] ? season[month] : 0
        value = 3.4 + liking + quality[film] + severity[user] + 0.5 * randn(rng)
        push!(table.user, "user $user"), push!(table.film, film_names[film]), push!(table.month, month)
        push!(table.stars, clamp(round(2 * value) / 2, 0.5, 5))
    end
    pairs = [(film_names[film], genres[genre]) for film in 1:film_count for genre in film_genres[film]]
    return table, (film=first.(pairs), genre=last.(pairs), value=ones(Float32, length(pairs)))
end

function main(folder)
    table, genre_table = simulate()
    # Every tenth rating is held out.
    part(keep) = map(column -> column[keep], table)
    held_out = [i % 10 == 0 for i in 1:length(table.stars)]
    train = Tensor(part(.!held_out))
    test = Tensor(part(held_out); like=train)
    display(train)
    println("\n")

    # Convergence, with and without the genres.
    println("without genres")
    alone = fit(train; test=test, rank=8, model=:cp, seed=1)
    println(last(history(alone)))
    println("with genres")
    coupled = fit(train; test=test, rank=8, model=:cp, seed=1, matrices=[CoupledMatrix(:film, genre_table; kind=:full, weight=1)]) do state
        state.epoch % 10 == 0 && println(state)
    end
    curve(model, field) = [(state.epoch, getfield(state, field)) for state in history(model)]
    plot(joinpath(folder, "convergence.svg"), "Convergence", "epoch", "RMSE",
        ["training" => curve(alone, :train_rmse), "test" => curve(alone, :test_rmse),
         "training, genres" => curve(coupled, :train_rmse), "test, genres" => curve(coupled, :test_rmse)])

    # Uncertainty: nine of ten held-out ratings should be inside their 90% interval.
    gibbs = fit(train; algorithm=:gibbs, rank=8, samples=30, seed=1)
    scores = evaluate_distributions(gibbs, test)
    @printf("\ngibbs: test RMSE %.4f, %.1f%% of the held-out ratings are inside their 90%% interval\n",
        evaluate(gibbs, test).clipped_rmse, 100 * scores.coverage_90)
    interval = predict(gibbs, (user=["user 1"], film=["film 3"], month=[6]); interval=0.9)
    @printf("user 1, film 3, month 6: %.2f stars, 90%% interval %.2f to %.2f\n", interval.prediction[1], interval.lower[1], interval.upper[1])

    println("\nfilms for user 1, without those the user has rated")
    display(recommend(coupled, :film; given=(user="user 1",), exclude=train, top=5))
    println("\n\nfilms like film 1")
    display(similar(coupled, :film, "film 1"; top=3))

    println("\n\nclusters of films and their genres")
    found = clusters(coupled, :film; k=5, matrices=[genre_table], labels=2, seed=1)
    display(found)

    # The two directions of largest variance of the clustered films.
    place = Dict(index => row for (row, index) in enumerate(rows(coupled, :film)))
    numbers = factor(Float64, coupled, :film)[[place[row] for row in found.rows], :]
    numbers = (numbers .- sum(numbers; dims=1) ./ size(numbers, 1)) .* norm.(eachcol(factor(coupled, :user)))'
    plane = numbers * svd(numbers).V[:, 1:2]
    names = labels(coupled, :film)
    members = [findall(==(number), found.assignment) for number in 1:length(found)]
    plot(joinpath(folder, "films.svg"), "Films by cluster", "first principal component", "second principal component",
        [found[number].labels[1].name => [Tuple(plane[i, :]) for i in list] for (number, list) in enumerate(members)];
        points=true, titles=[names[found.rows[list]] for list in members])

    # A new user with three ratings.
    new_user = (user=fill("new user", 3), film=["film 1", "film 2", "film 3"], month=[1, 1, 2], stars=[5.0, 2.5, 4.0])
    folded = fold_in(coupled, :user; tensor=new_user)
    println("\n\nfilms for a new user")
    display(recommend(folded.model, :film; given=(user="new user",), exclude=new_user, top=3))

    path = save(folded.model, joinpath(folder, "films.s3m"))
    println("\n\n", path, " predicts the same after loading: ",
        predict(load(path), ("new user", "film 9", 1)) == predict(folded.model, ("new user", "film 9", 1)))
end

main(isempty(ARGS) ? "." : ARGS[1])
