# Factors, core and other contents of models.
tucker = fit(ratings(); rank=(3, 2, 2), epochs=5, seed=1)
cp = quick_fit()

@testset "sizes" begin
    @test size(tucker) == (60, 40, 6) && size(tucker, :month) == 6 && ranks(tucker) == (3, 2, 2)
    @test info(tucker).kind === :tucker && info(cp).kind === :cp
    @test info(tucker).mean ≈ sum(stars) / 600 && info(tucker).min_value == 2 && info(tucker).max_value == 5
    @test rows(tucker, 1) == 1:60
    sparse_rows = quick_fit(Tensor((10 .* users, films, months), stars))
    @test rows(sparse_rows, 1) == 10:10:600 && size(sparse_rows, 1) == 600
end

@testset "arrays" begin
    for model in (tucker, cp), mode in 1:3
        view = factor(model, mode)
        @test size(view) == (length(rows(model, mode)), ranks(model)[mode])
        @test view == factor(Float32, model, mode)
        @test view ≈ factor(Float64, model, mode)
        @test factor(Float64, model, mode) isa Matrix{Float64}
        @test Array(view) isa Matrix{Float32}
        @test view[2, :] == row(model, mode, 2)
        @test biases(model, mode) == biases(Float32, model, mode)
        @test length(biases(model, mode)) == length(rows(model, mode))
    end
    @test size(core(tucker)) == (3, 2, 2) && core(tucker) == core(Float32, tucker)
    @test core(Float64, tucker) ≈ core(tucker)
    @test size(core(cp)) == (2,) && core(cp) == core(Float32, cp)
    @test size(biases(quick_fit(; biases=false), 1)) == (0,)
    @test_throws BoundsError factor(tucker, 1)[61, 1]
    @test_throws Exception (factor(tucker, 1)[1, 1] = 0)
end

# The prediction is the mean, the biases and the core times the factor rows.
@testset "prediction from parts" begin
    for model in (tucker, cp)
        i, j, k = 7, 11, 3
        u, v, w = (factor(Float64, model, mode)[index, :] for (mode, index) in enumerate((i, j, k)))
        g = core(Float64, model)
        interaction = info(model).kind === :cp ? sum(g .* u .* v .* w) :
            sum(g[p, q, r] * u[p] * v[q] * w[r] for p in axes(g, 1), q in axes(g, 2), r in axes(g, 3))
        total = info(model).mean + biases(model, 1)[i] + biases(model, 2)[j] + biases(model, 3)[k] + interaction
        @test predict(model, ([i], [j], [k]); clip=false)[1] ≈ total rtol = 1e-4
    end
end

@testset "record" begin
    facts = record(quick_fit(; test=ratings()))
    @test facts.epochs === 10 && facts.test_rmse isa Float64 && isnan(facts.valid_rmse) && facts.seconds isa Float64
    @test facts.reason == "epochs" && facts.clipped isa Bool && facts.notes isa Vector{String}
    @test length(record(quick_fit(; rank=:auto)).notes) > 1
end

@testset "save and load" begin
    mktempdir() do folder
        # A file that is replaced stays as it is for those who have mapped it.
        replaced = joinpath(folder, "replaced.s3m")
        save(cp, replaced)
        mapped = load(replaced)
        save(tucker, replaced)
        @test factor(mapped, 1) == factor(cp, 1) && ranks(load(replaced)) == ranks(tucker)
        path = joinpath(folder, "films.s3m")
        save(cp, path)
        for mapped in (true, false)
            loaded = load(path; mapped=mapped)
            @test factor(loaded, 2) == factor(cp, 2) && predict(loaded, (1, 2, 3)) == predict(cp, (1, 2, 3))
            @test options(loaded) == options(cp)
            @test length(history(loaded)) == 10
        end
        named = quick_fit(Tensor(ratings_table))
        save(named, path)
        loaded = load(path)
        @test labels(loaded, 2) == labels(named, 2) && labels(loaded, 1) === nothing
        @test predict(loaded, (1, "film 7", "month 3")) == predict(named, (1, "film 7", "month 3"))
        export_arrays(named, joinpath(folder, "arrays"))
        @test any(endswith(".npy"), readdir(joinpath(folder, "arrays")))
    end
end
