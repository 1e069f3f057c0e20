# Clusters of the rows of a mode.

const spaces = (predictions=S3CMTF_SPACE_PREDICTIONS, columns=S3CMTF_SPACE_COLUMNS)

"""
A column of a label matrix that is over-represented in a cluster: the number of the `matrix`, the `column` and its `name`, the numbers
of rows with the label, `lift`, `p_value` and its decimal logarithm, and `log_odds`.
"""
struct ClusterLabel
    matrix::Int
    column::Int
    name::String
    rows_in_cluster::Int
    rows_overall::Int
    lift::Float64
    p_value::Float64
    log10_p_value::Float64
    log_odds::Float64
end

"""
A cluster: its number of `rows`, `radius`, the rows nearest to its `centre` with their distances (`members`) and its `labels`.
"""
struct Cluster
    rows::Int
    radius::Float64
    members::Ranking
    labels::Vector{ClusterLabel}
    centre::Vector{Float64}
end

"""
Clusters of the rows of a mode, the largest first; a vector of `Cluster`. `rows` are the clustered rows and `assignment` the cluster
of each. `explained_variance` is the fraction of the variance between clusters. `gap` is the gap curve, and `information` has Theil's U
of each label matrix.
"""
struct Clusters <: AbstractVector{Cluster}
    mode::Symbol
    clusters::Vector{Cluster}
    rows::Vector{Int}
    assignment::Vector{Int}
    explained_variance::Float64
    gap::Vector{typeof(named_tuple(c_struct(s3cmtf_gap)))}
    gap_choice::Int
    gap_settled::Bool
    information::Vector{Float64}
end
Base.size(clusters::Clusters) = size(clusters.clusters)
Base.getindex(clusters::Clusters, i::Int) = clusters.clusters[i]

"""
    clusters(model, mode; k=0, max_k=0, space=:predictions, matrices=[], members=10, labels=10, min_entries=1, restarts=10,
        references=10, curve_rows=20_000, seed=0, threads=0)

Clusters the rows of a mode by k-means. Without `k`, the gap statistic selects the number of clusters, up to `max_k` (20 if it is 0).
Distances are those of predictions, or of factor rows with `space=:columns`. `matrices` are matrices with the rows of the mode whose
columns label the clusters; a row has a label if its entry is above 0. Rows that the model does not have are left out with a warning.
"""
function clusters(model::Model, mode; k=0, max_k=0, space=:predictions, matrices=(), members=10, labels=10, min_entries=1, restarts=10,
    references=10, curve_rows=20_000, seed=0, threads=0)
    number = mode_number(model, mode)
    list = matrices isa Union{AbstractVector,Tuple} && !(matrices isa Tuple{Vararg{AbstractVector}} && !isempty(matrices)) ? matrices : (matrices,)
    entries = Tensor[label_entries(model, number, matrix, "matrix $place") for (place, matrix) in enumerate(list)]
    handle = use(model.handle, (tensor.handle for tensor in entries)...) do model_pointer, coos...
        pointers = collect(Ptr{s3cmtf_coo}, coos)
        GC.@preserve pointers begin
            request = Ref(c_struct(s3cmtf_clusters_request; k=k, max_k=max_k, restarts=restarts, references=references,
                curve_rows=curve_rows, min_entries=min_entries, space=code(spaces, space, "space is"), members=members, labels=labels,
                matrices=isempty(pointers) ? C_NULL : pointer(pointers), matrix_count=length(pointers), seed=seed, threads=threads))
            create(output -> s3cmtf_clusters_new(model_pointer, number - 1, request, output), s3cmtf_clusters)
        end
    end
    names = ModeLabels[tensor.labels[2] for tensor in entries]
    result = use(found -> read_clusters(model, number, found, names), handle)
    close(handle)
    return result
end

"The entries of a matrix that labels the rows of a mode. Rows that the model does not have are left out."
function label_entries(model::Model, mode, data, what)
    known, name, count = model.labels[mode], model.modes[mode], size(model, mode)
    entries, _ = match_matrix(matrix_entries(data, :full, known), :full, Rows("the model", known, count), what, "mode $name", left_out)
    if known === nothing || entries.labels[1] === nothing
        (data isa AbstractMatrix || size(entries, 1) > count) && check_matrix_rows(entries, count, name)
        return entries
    end
    is_known = indices(entries, 1) .<= count
    kept = Tensor((indices(entries, 1)[is_known], indices(entries, 2)[is_known]), values(entries)[is_known]; dims=(count, size(entries, 2)))
    return Tensor(kept.handle, entries.modes, ModeLabels[known, entries.labels[2]], kept.arrays)
end

function read_clusters(model::Model, mode, found, names)
    info = read_struct(info -> s3cmtf_clusters_get_info(found, info), s3cmtf_clusters_info)
    rows, which = Vector{UInt64}(undef, info.rows), Vector{UInt64}(undef, info.rows)
    s3cmtf_clusters_copy_rows(found, rows, which, info.rows)
    information = Vector{Float64}(undef, info.matrices)
    s3cmtf_clusters_copy_information(found, information, length(information))
    gap = map(0:Int(info.curve_length)-1) do place
        named_tuple(read_struct(point -> s3cmtf_clusters_get_gap(found, place, point), s3cmtf_gap))
    end
    list = [read_cluster(model, mode, found, index, names) for index in 0:Int(info.clusters)-1]
    return Clusters(model.modes[mode], list, Int.(rows) .+ 1, Int.(which) .+ 1, info.explained_variance, gap, info.curve_choice,
        info.curve_settled != 0, information)
end

function read_cluster(model::Model, mode, found, index, names)
    info = read_struct(info -> s3cmtf_clusters_get(found, index, info), s3cmtf_cluster)
    rows, distances = Vector{UInt64}(undef, info.members), Vector{Float64}(undef, info.members)
    s3cmtf_clusters_copy_members(found, index, rows, distances, info.members)
    centre = Vector{Float64}(undef, ranks(model)[mode])
    s3cmtf_clusters_copy_centre(found, index, centre, length(centre))
    labels = map(0:Int(info.labels)-1) do place
        output = read_struct(output -> s3cmtf_clusters_get_label(found, index, place, output), s3cmtf_cluster_label)
        matrix, column = Int(output.matrix) + 1, Int(output.column) + 1
        from_struct(ClusterLabel, output; matrix=matrix, column=column, name=label(names[matrix], column))
    end
    members = ranking_lists(rows, distances, [info.members], Int(info.members), model.labels[mode], 0)[1]
    return Cluster(info.rows, info.radius, members, labels, centre)
end
