# Progress, cancellation, checkpoints, validation, search.
held_out = Tensor((users[1:60], films[1:60], months[1:60]), stars[1:60])

@testset "progress" begin
    run = FitProgress(ratings(); model=:cp, rank=2, epochs=15, test=held_out)
    seen = collect(run)
    model = fetch(run)
    @test last(seen).epoch == 15 && issorted([state.epoch for state in seen])
    @test all(state -> state.epochs == 15 && isfinite(state.train_rmse), seen)
    @test isfinite(last(seen).test_rmse) && isnan(last(seen).valid_rmse)
    @test !isrunning(run) && progress(run).stop_reason === :epochs
    @test fetch(run) === model
    @test [state.epoch for state in history(model)] == 1:15
    @test record(model).reason == "epochs"
    # The model outlives the fit.
    close(run)
    @test isfinite(predict(model, (1, 1, 1)))
    @test occursin("closed", message(() -> progress(run)))
end

@testset "callback" begin
    epochs = Int[]
    model = fit(ratings(); model=:cp, rank=2, epochs=8) do state
        push!(epochs, state.epoch)
    end
    @test last(epochs) == 8
    @test model isa Model
    # A callback that returns true ends the fit, here of very many epochs.
    model = fit(state -> state.epoch >= 3, ratings(); model=:cp, rank=2, epochs=1_000_000)
    @test 3 <= info(model).epochs < 1_000_000
    @test record(model).reason == "cancelled"
    # An exception in the callback ends the fit as well.
    @test_throws ErrorException fit(state -> error("stop"), ratings(); model=:cp, rank=2, epochs=1_000_000)
    @test fit!(state -> false, FitProgress(ratings(); rank=2, epochs=2)) isa Model
end

@testset "cancellation" begin
    run = FitProgress(ratings(); model=:cp, rank=2, epochs=1_000_000)
    @test isrunning(run)
    iterate(run)
    cancel(run)
    @test fetch(run) isa Model
    # A running fit can be closed or collected.
    run = FitProgress(ratings(); model=:cp, rank=2, epochs=1_000_000)
    close(run)
    @test !isopen(run)
    FitProgress(ratings(); model=:cp, rank=2, epochs=1_000_000)
    GC.gc()
end

@testset "validation and initial model" begin
    model = quick_fit(; valid=held_out, patience=3)
    @test isfinite(last(history(model)).valid_rmse)
    start = quick_fit()
    continued = quick_fit(; init=start, epochs=1)
    @test first(history(continued)).train_rmse < first(history(start)).train_rmse + 0.01
    named = Tensor(ratings_table)
    @test isfinite(last(history(quick_fit(named; test=map(column -> column[1:50], ratings_table)))).test_rmse)
end

@testset "checkpoint and resume" begin
    mktempdir() do folder
        path = joinpath(folder, "run.s3m")
        settings = (model=:cp, rank=2, schedule=:inverse, eta=0.02, start=:normal, seed=3)
        fit(ratings(); epochs=5, checkpoint=path, settings...)
        resumed = fit(ratings(); epochs=9, resume=path)
        whole = fit(ratings(); epochs=9, settings...)
        @test info(resumed).epochs == 9
        @test factor(resumed, 1) == factor(whole, 1)
        @test info(load(path)).order == 3
        @test thrown(() -> fit(ratings(); resume=joinpath(folder, "absent.s3m"))) isa S3CMTFError
        @test thrown(() -> fit(ratings(); resume=path, rank=3)) isa S3CMTFError
    end
end

@testset "plans" begin
    matrices = [CoupledMatrix(2, kinds)]
    settings = (rank=3, epochs=4)
    fitted = fit(ratings(); matrices=matrices, settings...)
    text = plan(ratings(); matrices=matrices, settings...)
    @test text == plan(fitted) && occursin("\"s3cmtf_plan\":1", text)
    repeated = fit(ratings(); matrices=matrices, plan=text)
    @test all(mode -> factor(repeated, mode) == factor(fitted, mode), 1:3) && core(repeated) == core(fitted)
    @test plan(repeated) == text && info(repeated).epochs == 4
    # Samples, and validation entries.
    settings = (algorithm=:gibbs, rank=2, samples=4, valid=held_out)
    text = plan(ratings(); settings...)
    @test factor(fit(ratings(); valid=held_out, plan=text), 1) == factor(fit(ratings(); settings...), 1)
    @test occursin("validation entries", message(() -> fit(ratings(); plan=text)))
    @test occursin("other data", message(() -> fit(held_out; valid=held_out, plan=text)))
    @test occursin("rank is 3 here and 2 in the plan", message(() -> fit(ratings(); valid=held_out, plan=text, rank=3)))
    @test occursin("not JSON", message(() -> fit(ratings(); plan="rank=3")))
    @test thrown(() -> fit(ratings(); plan=3)) isa ArgumentError
end

@testset "search" begin
    seen = 0
    found = tune(ratings(); trials=6, rungs=2, epochs=6, seed=2, ranges=(rank=[2, 3], eta="0.01..0.05"), model=:cp) do trial
        seen += 1
        false
    end
    @test length(found) == 6 && seen >= 6
    @test issorted([trial.valid_rmse for trial in found if trial.error === nothing && trial.rungs == 2])
    # Trial 0 has the given options.
    sampled = filter(trial -> trial.number > 0, collect(found))
    @test all(trial -> trial.options[:rank] in ("2", "3"), sampled)
    @test fit(ratings(); options=found[1].options) isa Model
    @test length(tune(trial -> trial.done >= 2, ratings(); trials=30, epochs=3, model=:cp, ranges=(rank=[2],))) < 30
    @test_throws ErrorException tune(trial -> error("stop"), ratings(); trials=3, epochs=2)
    @test thrown(() -> tune(ratings(); trials=3, ranges=(rnak=[2],))) isa S3CMTFError
    mktempdir() do folder
        path = joinpath(folder, "search.state")
        search(; options...) = tune(ratings(); trials=4, rungs=1, epochs=3, valid=held_out, model=:cp, ranges=(rank=[2],), options...)
        first_search = search(; checkpoint=path)
        @test search(; resume=path)[1].valid_rmse == first_search[1].valid_rmse
    end
end
