# Tensors with coupled matrices and graphs.

const matrix_kinds = (observed=S3CMTF_MATRIX_OBSERVED, graph=S3CMTF_MATRIX_GRAPH, full=S3CMTF_MATRIX_FULL,
    sampled=S3CMTF_MATRIX_SAMPLED, auto=S3CMTF_MATRIX_AUTO)

"""
    CoupledMatrix(mode, data; kind=:auto, weight=nothing, penalty=nothing, zeros=nothing)

A matrix whose rows are the rows of a mode of the tensor, by its number or name. `data` is a `SparseMatrixCSC` or dense matrix, a
tuple `(rows, columns, values)`, a table, a file or a `Tensor`. In a table the first index column has the rows.
Rows with names are matched with the names of the mode, and new names are appended to it. A dense matrix has the rows of the mode in
order; cells that are `NaN` or `missing` are unknown.

| `kind` | a cell that is not listed |
| --- | --- |
| `:auto` | is unknown; 0 if all listed values are equal and held-out entries are then predicted better |
| `:observed` | is unknown |
| `:full` | is 0 |
| `:sampled` | is 0 if it is one of `zeros` cells sampled for each entry |

`weight` multiplies its squared errors; by default the option `lambda_m` applies. `penalty` replaces the option `lambda_reg` for the
factor of its columns.
"""
struct CoupledMatrix
    mode::Union{Int,Symbol}
    data::Any
    kind::Symbol
    weight::Float64
    penalty::Union{Nothing,Float64}
    zeros::Int
end

function CoupledMatrix(mode, data; kind=:auto, weight=nothing, penalty=nothing, zeros=nothing)
    code(matrix_kinds, kind, "kind is")
    weight === nothing || 0 < weight < Inf || throw(ArgumentError("the weight of a matrix is $weight; it is finite and above 0"))
    penalty === nothing || 0 <= penalty < Inf || throw(ArgumentError("the penalty of a matrix is $penalty; it is finite and at least 0"))
    zeros === nothing || Symbol(kind) === :sampled || throw(ArgumentError("`zeros` is for kind :sampled, not $(repr(kind))"))
    zeros === nothing || c_integer(Int, zeros, "zeros") >= 1 || throw(ArgumentError("zeros is $zeros; it is at least 1"))
    count = something(zeros, Symbol(kind) === :sampled ? 1 : 0)
    return CoupledMatrix(mode isa Integer ? Int(mode) : Symbol(mode), data, Symbol(kind), something(weight, 0), penalty, count)
end

"""
    Graph(mode, data; weight=nothing)

Similarities between rows of a mode: a penalty on the differences between the factor rows of similar rows. `data` is a square matrix
in any form that `CoupledMatrix` accepts; in a table both index columns have rows of the mode.
"""
Graph(mode, data; weight=nothing) = CoupledMatrix(mode, data; kind=:graph, weight=weight)

coupled_matrix(matrix::CoupledMatrix) = matrix
coupled_matrix((mode, data)::Pair) = data isa CoupledMatrix ? data : CoupledMatrix(mode, data)
coupled_matrix(other) = throw(ArgumentError("a coupled matrix is CoupledMatrix(mode, data), Graph(mode, data) or mode => data; this is " *
    summary(other)))

"""
    Problem(tensor; matrices=[])

A tensor and the matrices coupled to its modes, for several fits of the same data. `matrices` is a list of `CoupledMatrix`, `Graph` or
pairs `mode => data`.
"""
struct Problem
    handle::Handle{s3cmtf_problem}
    modes::Vector{Symbol}
    labels::Vector{ModeLabels}
    sizes::Vector{Int}
    matrices::Vector{CoupledMatrix}
    matrix_labels::Vector{ModeLabels}
    arrays::Any
end

function Problem(data; matrices=())
    tensor = Tensor(data)
    handle = use(coo -> create(output -> s3cmtf_problem_new(coo, output), s3cmtf_problem), tensor.handle)
    problem = Problem(handle, tensor.modes, copy(tensor.labels), collect(size(tensor)), CoupledMatrix[], ModeLabels[], Any[tensor.arrays])
    foreach(matrix -> couple!(problem, coupled_matrix(matrix)), matrices isa Union{CoupledMatrix,Pair} ? (matrices,) : matrices)
    return problem
end

problem_of(data, matrices) = Problem(data; matrices=matrices)
problem_of(problem::Problem, matrices) = isempty(matrices) ? problem :
    throw(ArgumentError("a Problem has its matrices already; give them to Problem()"))

Base.close(problem::Problem) = close(problem.handle)
Base.isopen(problem::Problem) = isopen(problem.handle)
Base.ndims(problem::Problem) = length(problem.modes)

is_table_of_entries(data) = !(data isa Union{Tensor,AbstractString,Tuple,SparseMatrixCSC}) && is_table(data)

"The entries of a dense matrix. Cells that are 0 are listed if a cell that is not listed is unknown."
function dense_entries(matrix::AbstractMatrix, kind::Symbol)
    SparseArrays.issparse(matrix) && return Tensor(SparseMatrixCSC(matrix))
    Base.nonmissingtype(eltype(matrix)) <: Real || throw(ArgumentError("a matrix has numbers; this is $(summary(matrix))"))
    Base.require_one_based_indexing(matrix)
    is_zero_implied = kind in (:full, :sampled, :graph)
    is_listed(cell) = !ismissing(cell) && !isnan(cell) && !(is_zero_implied && iszero(cell))
    cells = CartesianIndex{2}[cell for cell in CartesianIndices(matrix) if is_listed(matrix[cell])]
    return Tensor(cells, Float64[matrix[cell] for cell in cells]; dims=size(matrix))
end

"The entries of a matrix that is not a table."
matrix_tensor(data, kind) = data isa AbstractMatrix ? dense_entries(data, kind) : Tensor(data)

"""
The entries of a matrix. Of a table, numbers are names if the rows of the mode (`labels`), or the columns of the matrix (`columns`), have
names.
"""
function matrix_entries(data, kind, labels::ModeLabels, columns::ModeLabels=nothing)
    is_table_of_entries(data) || return matrix_tensor(data, kind)
    table = column_table(data)
    names, value, weight = column_roles(table, nothing, nothing, nothing)
    length(names) == 2 || throw(ArgumentError("a table of a matrix has a column of rows, one of columns and one of values; this has " *
        "the index columns $(join(names, ", "))"))
    known = (labels, kind === :graph ? labels : columns)
    return Tensor(table; columns=names, value=value, strings=names[[known...].!==nothing])
end

"""
Returns a matrix whose rows, and of a graph also columns, are matched with those of a mode, and the names of both. Messages call it
`what`.
"""
function match_matrix(entries::Tensor, kind, known::Rows, what, title, fate)
    ndims(entries) == 2 || throw(DimensionMismatch("a coupled matrix has 2 modes; this has $(ndims(entries))"))
    sides = kind === :graph ? [1, 2] : [1]
    found = entries.labels[sides]
    any(isnothing, found) == all(isnothing, found) ||
        throw(ArgumentError("a graph has names of its rows or of its columns only; give both, or none"))
    names = found[1]
    if names !== nothing && found[end].names != names.names
        check_faults(Rows(what, names, 0), Rows(what, found[end], 0), title)
        names = copy(names)
        foreach(name -> row!(names, name), found[end].names)
    end
    used = names === nothing || nnz(entries) == 0 ? 0 : maximum(side -> maximum(indices(entries, side)), sides)
    rows, labels = match_rows(known, Rows(what, names, used), title, fate)
    names === nothing && return entries, labels
    matched = Tensor(entries.handle, entries.modes, ModeLabels[labels, kind === :graph ? labels : entries.labels[2]], entries.arrays)
    is_same = rows === nothing && all(of -> of.names == names.names, found) && (labels === nothing || size(entries, 1) == length(labels))
    (is_same || nnz(entries) == 0) && return matched, labels
    indices_of = Vector{Int}[indices(entries, side) for side in 1:2]
    for (side, of) in zip(sides, found)
        of.names == names.names || (indices_of[side] = [names.rows[name] for name in of.names][indices_of[side]])
        rows === nothing || (indices_of[side] = rows[indices_of[side]])
    end
    return renumbered(matched, indices_of), labels
end

"The same entries with other row numbers."
function renumbered(tensor::Tensor, rows)
    handle, arrays = coo_from_arrays(cell_arrays(Tuple(rows)), values(tensor), weights(tensor), nothing, true)
    return Tensor(handle, tensor.modes, tensor.labels, arrays)
end

check_matrix_rows(entries::Tensor, rows, mode) = size(entries, 1) == rows || throw(DimensionMismatch(
    "the matrix has $(size(entries, 1)) rows, but mode $mode has $rows; give it a row for each row of the mode, or labels: a table " *
    "with names of rows"))

function couple!(problem::Problem, matrix::CoupledMatrix)
    mode = mode_number(problem, matrix.mode)
    known = Rows("the tensor", problem.labels[mode], problem.sizes[mode])
    entries, labels = match_matrix(matrix_entries(matrix.data, matrix.kind, problem.labels[mode]), matrix.kind, known,
        "matrix $(length(problem.matrices) + 1)", "mode $(problem.modes[mode])", appended)
    # Rows beyond those of a mode with names would have none.
    problem.labels[mode] === nothing || entries.labels[1] !== nothing || size(entries, 1) <= problem.sizes[mode] ||
        check_matrix_rows(entries, problem.sizes[mode], problem.modes[mode])
    coupling = Ref(c_struct(s3cmtf_coupling; kind=code(matrix_kinds, matrix.kind, "kind is"), zeros=matrix.zeros, weight=matrix.weight,
        penalty=something(matrix.penalty, 0.0), has_penalty=matrix.penalty !== nothing))
    try
        use((pointer, coo) -> s3cmtf_problem_add_matrix(pointer, mode - 1, coo, coupling), problem.handle, entries.handle)
    catch
        is_graph = matrix.kind === :graph
        is_graph && size(entries, 1) != size(entries, 2) &&
            throw(DimensionMismatch("a graph is a square matrix; this is $(size(entries, 1)) x $(size(entries, 2))"))
        check_matrix_rows(entries, problem.sizes[mode], problem.modes[mode])
        rethrow()
    end
    problem.sizes[mode] = max(problem.sizes[mode], size(entries, 1))
    # Names that only the matrix has belong to rows of the mode, too.
    problem.labels[mode] = labels
    push!(problem.matrices, matrix)
    push!(problem.matrix_labels, entries.labels[2])
    push!(problem.arrays, entries.arrays)
    return problem
end
