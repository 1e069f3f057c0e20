# Timings through the package, the fastest of several repetitions, in seconds. bindings/fixture/bench.c prints those from C, for the
# same data: see there. `direct` are the same calls of the library without the package, in turn with those of the package.
#
#   julia --project=bindings/julia bindings/julia/bench.jl
using S3CMTF
using S3CMTF: cell_arrays, c_indices, c_struct, create, use

# Entry i, from 0; indices count from 1.
column(T, factor, dim, count) = T[factor * i % dim + 1 for i in 0:count-1]
columns(T, dims, count) = (column(T, 7919, dims[1], count), column(T, 104729, dims[2], count), column(T, 1, dims[3], count))
stars(count) = Float32[i % 5 + 1 for i in 0:count-1]

"Prints the fastest times of functions that run in turn."
function compare(repeats, functions::Pair...)
    fastest = fill(Inf, length(functions))
    for _ in 0:repeats, (i, (_, f)) in enumerate(functions)
        fastest[i] = min(fastest[i], @elapsed f())
        GC.gc(false)
    end
    foreach(((name, _), seconds) -> println(name, " ", round(seconds; digits=6)), functions, fastest)
end

function predict_directly(model, cells)
    arrays = cell_arrays(cells)
    predictions = Vector{Float64}(undef, arrays.count)
    indices = Ref(c_indices(arrays))
    GC.@preserve model arrays S3CMTF.s3cmtf_model_predict(model.handle.pointer, indices, predictions, arrays.count, S3CMTF.S3CMTF_F64, C_NULL)
    return predictions
end

function problem_directly(entries, values, dims)
    arrays, sizes = cell_arrays(entries), collect(UInt64, dims)
    GC.@preserve arrays sizes values begin
        description = Ref(c_struct(S3CMTF.s3cmtf_entries; order=3, dims=pointer(sizes), indices=c_indices(arrays),
            values=pointer(values), value_type=S3CMTF.S3CMTF_F32))
        coo = create(output -> S3CMTF.s3cmtf_coo_new(description, output), S3CMTF.s3cmtf_coo)
        problem = use(pointer -> create(output -> S3CMTF.s3cmtf_problem_new(pointer, output), S3CMTF.s3cmtf_problem), coo)
    end
    close(problem)
    close(coo)
end

function problem_by_package(entries, values, dims)
    tensor = Tensor(entries, values; dims=dims)
    close(Problem(tensor))
    close(tensor)
end

function main()
    small, large = (10_000, 5_000, 50), (1_000_000, 100_000, 100)
    cells = columns(UInt32, small, 1_000_000)
    training = map(column -> column[1:200_000], cells)
    model = fit(Tensor(training, stars(200_000); dims=small); model=:cp, rank=16, epochs=2, seed=7)
    compare(30, "predict_1m" => () -> predict(model, cells), "predict_1m_direct" => () -> predict_directly(model, cells))

    values, entries = stars(10_000_000), columns(UInt32, large, 10_000_000)
    wide = map(column -> Int.(column), entries)
    compare(6, "problem_10m" => () -> problem_by_package(entries, values, large),
        "problem_10m_direct" => () -> problem_directly(entries, values, large),
        "problem_10m_int64" => () -> problem_by_package(wide, values, large))
end

main()
