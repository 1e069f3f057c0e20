# How objects print.
plain(object) = sprint(show, MIME("text/plain"), object)
model = fit(Tensor(ratings_table); model=:cp, rank=2, epochs=5, matrices=[CoupledMatrix(:film, (film=["film 1"], genre=["odd"], value=[1.0]); kind=:full, weight=1)])

@test string(ratings()) == "Tensor(60 x 40 x 6, 600 entries)"
@test occursin("mode 2 film: 40, named", plain(Tensor(ratings_table)))
@test occursin("with weights", plain(weighted(ratings(), ones(600))))
@test string(model) == "CP model(60 x 40 x 6, rank 2)"
@test occursin("mode 1 user: 60 of 60 rows, rank 2", plain(model))
@test occursin("matrix 1 on mode 2: full, weight 1.0, 1 columns", plain(model))
@test occursin("5 epochs\n  RMSE: training 0.", plain(model)) && endswith(plain(model), "(epoch 5)")
# The errors are those of the model: of its best epoch.
best = fit(ratings(); model=:cp, rank=2, epochs=10, seed=1, test=ratings(), valid=Tensor((users, films, months), 7 .- stars))
facts = record(best)
@test facts.best_epoch isa Int && facts.best_epoch != 10
@test endswith(plain(best), string("test ", S3CMTF.short(facts.test_rmse), " (epoch ", facts.best_epoch, ")"))
@test string(Problem(ratings())) == "Problem(user x film x month, 0 coupled matrices)"
@test string(Graph(:user, (1:2, 1:2, 1:2))) |> text -> startswith(text, "Graph(:user, ")
@test startswith(plain(recommend(model, :film; given=(user=1,), top=2)), "2 rows:\n   1  ")
@test occursin("film", string(similar(model, :film, 1; top=2)))
@test startswith(plain(concepts(model, :film)), "2 concepts of mode film:")
@test occursin("40 rows of mode film in 2 clusters", plain(clusters(model, :film; k=2)))
@test startswith(plain(options()), "$(length(options())) options:")
@test occursin("values: 1 to 1024", plain(options()[:rank]))
running = FitProgress(ratings(); rank=2, epochs=2)
fetch(running)
@test startswith(string(running), "FitProgress(ended, epoch 2 of 2")
close(running)
@test string(running) == "FitProgress(closed)"
closed = ratings()
close(closed)
@test string(closed) == "Tensor(closed)" && plain(closed) == "Tensor(closed)"
@test startswith(string(tune(ratings(); trials=2, rungs=1, epochs=2, rank=2)[1]), "trial ")
