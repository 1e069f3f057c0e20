"""
Factorization of a sparse tensor together with coupled sparse matrices, by the library s3cmtf.

`Tensor` holds the data, `fit` returns a `Model`, and `predict`, `evaluate`, `recommend`, `similar`, `concepts`, `clusters` and
`fold_in` use it. Modes, rows and matrices count from 1.
"""
module S3CMTF

import Libdl
import Serialization
using SHA: sha256
using Printf: @sprintf
import SparseArrays
using SparseArrays: SparseMatrixCSC, findnz, nnz

export S3CMTFError, statusname
export Tensor, indices, weights, weighted, labels, row_names, nnz
export convert_file, check, summarize, fix, split_file
export CoupledMatrix, Graph, Problem
export options, presets, fit, fit!, FitProgress, Progress, progress, isrunning, cancel, tune
export Model, load, save, export_arrays, info, matrix, ranks, rows, row, factor, core, biases, matrix_factor, matrix_columns, offsets
export history, record, plan
export predict, evaluate, evaluate_binary, evaluate_distributions, evaluate_ranking, fold_in
export recommend, concepts, clusters

const FloatType = Union{Float32,Float64}

include("c_types.jl")
include("library.jl")
include("errors.jl")
include("interrupts.jl")
include("c_functions.jl")
include("handles.jl")
include("views.jl")
include("labels.jl")
include("names_files.jl")
include("indices.jl")
include("tables.jl")
include("tensor.jl")
include("files.jl")
include("options.jl")
include("problem.jl")
include("progress.jl")
include("model.jl")
include("fit.jl")
include("tune.jl")
include("predict.jl")
include("evaluate.jl")
include("fold_in.jl")
include("rankings.jl")
include("concepts.jl")
include("clusters.jl")
include("show.jl")

"""
    version()

Returns the version of the library.
"""
version() = VersionNumber(unsafe_string(s3cmtf_version()))

end
