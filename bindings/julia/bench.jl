# Times of the package, for ../bench.sh: the fastest of several repetitions, in seconds. ../fixture/bench.c describes the data.
#
#   predict_1m           predicts 1,000,000 cells
#   problem_10m          creates a tensor from 10,000,000 entries and a problem
#   problem_10m_int64    the same from vectors of Int, the default type of Julia
using S3CMTF

# Entry i, from 0; indices count from 1.
column(T, factor, dim, count) = T[factor * i % dim + 1 for i in 0:count-1]
columns(T, dims, count) = (column(T, 7919, dims[1], count), column(T, 104729, dims[2], count), column(T, 1, dims[3], count))
stars(count) = Float32[i % 5 + 1 for i in 0:count-1]

function fastest(f, repeats)
    f()
    return minimum(1:repeats) do _
        GC.gc(false)
        @elapsed f()
    end
end

function create_problem(entries, values, dims)
    tensor = Tensor(entries, values; dims=dims)
    close(Problem(tensor))
    close(tensor)
end

function main()
    small, large = (10_000, 5_000, 50), (1_000_000, 100_000, 100)
    cells = columns(UInt32, small, 1_000_000)
    training = map(column -> column[1:200_000], cells)
    model = fit(Tensor(training, stars(200_000); dims=small); model=:cp, rank=16, epochs=2, seed=7)
    println("predict_1m ", fastest(() -> predict(model, cells), 30))

    values, entries = stars(10_000_000), columns(UInt32, large, 10_000_000)
    wide = map(column -> Int.(column), entries)
    println("problem_10m ", fastest(() -> create_problem(entries, values, large), 4))
    println("problem_10m_int64 ", fastest(() -> create_problem(wide, values, large), 4))
end

main()
