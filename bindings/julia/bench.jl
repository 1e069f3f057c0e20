# Timings through the package, the fastest of several repetitions, in seconds. bindings/fixture/bench.c prints those from C, for the
# same data: see there.
#
#   julia --project=bindings/julia bindings/julia/bench.jl
using S3CMTF

# Entry i, from 0; indices count from 1.
column(T, factor, dim, count) = T[factor * i % dim + 1 for i in 0:count-1]
columns(T, dims, count) = (column(T, 7919, dims[1], count), column(T, 104729, dims[2], count), column(T, 1, dims[3], count))
stars(count) = Float32[i % 5 + 1 for i in 0:count-1]

fastest(f, repeats) = minimum((GC.gc(); @elapsed f()) for _ in 1:repeats)

function main()
    small = (10_000, 5_000, 50)
    cells = columns(UInt32, small, 1_000_000)
    training = map(column -> column[1:200_000], cells)
    model = fit(Tensor(training, stars(200_000); dims=small); model=:cp, rank=16, epochs=2, seed=7)
    println("predict_1m ", fastest(() -> predict(model, cells), 8))

    large = (1_000_000, 100_000, 100)
    values = stars(10_000_000)
    for T in (UInt32, Int)
        entries = columns(T, large, 10_000_000)
        make() = (tensor = Tensor(entries, values; dims=large); problem = Problem(tensor); close(problem); close(tensor))
        println(T === Int ? "problem_10m_int64 " : "problem_10m ", fastest(make, 5))
    end
end

main()
