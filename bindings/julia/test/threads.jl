# Threads of Julia use one model at the same time.
Threads.nthreads() > 1 || println("SKIPPED: one thread; start Julia with JULIA_NUM_THREADS=2 to test several")
model = quick_fit()
expected = predict(model, (users, films, months))
agree = zeros(Bool, 40)
Threads.@threads for i in 1:40
    agree[i] = predict(model, (users, films, months); threads=1) == expected && length(similar(model, 2, 1)) == 10
end
@test all(agree)

# One thread closes the model while others use it: they get a result or the exception.
shared = quick_fit()
outcomes = Vector{Any}(undef, 40)
Threads.@threads for i in 1:40
    i == 21 && close(shared)
    outcomes[i] = try
        predict(shared, (users, films, months); threads=1) == expected
    catch failure
        failure isa S3CMTFError && occursin("closed", failure.message)
    end
end
@test all(outcomes)

# Several fits at the same time.
models = Vector{Model}(undef, 4)
Threads.@threads for i in 1:4
    models[i] = quick_fit(; threads=1)
end
@test all(other -> factor(other, 1) == factor(model, 1), models)
