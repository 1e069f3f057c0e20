# How objects print: one line, and several lines in the REPL (text/plain).

grouped(number::Integer) = replace(string(number), r"(?<=[0-9])(?=(?:[0-9]{3})+$)" => ",")
shape(sizes) = join(grouped.(sizes), " x ")
short(number) = @sprintf("%.4f", number)

show_closed(io, name) = print(io, name, "(closed)")

function Base.show(io::IO, tensor::Tensor)
    isopen(tensor) || return show_closed(io, "Tensor")
    print(io, "Tensor(", shape(size(tensor)), ", ", grouped(nnz(tensor)), " entries)")
end

function Base.show(io::IO, ::MIME"text/plain", tensor::Tensor)
    show(io, tensor)
    isopen(tensor) || return
    info = coo_info(tensor.handle)
    for (mode, size) in enumerate(size(tensor))
        print(io, "\n  mode ", mode, " ", tensor.modes[mode], ": ", grouped(size))
        tensor.labels[mode] === nothing || print(io, ", named")
    end
    print(io, "\n  values: ", info.value_type == S3CMTF_F64 ? Float64 : Float32)
    info.weight_type == 0 || print(io, ", with weights")
end

function Base.show(io::IO, matrix::CoupledMatrix)
    print(io, matrix.kind === :graph ? "Graph(" : "CoupledMatrix(", repr(matrix.mode), ", ", summary(matrix.data))
    matrix.kind === :graph || print(io, ", kind ", matrix.kind)
    matrix.weight == 0 || print(io, ", weight ", matrix.weight)
    print(io, ")")
end

function Base.show(io::IO, problem::Problem)
    isopen(problem) || return show_closed(io, "Problem")
    print(io, "Problem(", join(problem.modes, " x "), ", ", length(problem.matrices), " coupled matrices)")
end

function Base.show(io::IO, p::Progress)
    print(io, "epoch ", p.epoch, " of ", p.epochs)
    isnan(p.train_rmse) || print(io, ", training RMSE ", short(p.train_rmse))
    isnan(p.valid_rmse) || print(io, ", validation RMSE ", short(p.valid_rmse))
    isnan(p.test_rmse) || print(io, ", test RMSE ", short(p.test_rmse))
    p.stop_reason === :none || print(io, ", stopped (", p.stop_reason, ")")
end

function Base.show(io::IO, run::FitProgress)
    isopen(run) || return show_closed(io, "FitProgress")
    print(io, "FitProgress(", isrunning(run) ? "running" : "ended", ", ", progress(run), ")")
end

function Base.show(io::IO, model::Model)
    isopen(model) || return show_closed(io, "Model")
    print(io, info(model).kind === :cp ? "CP" : "Tucker", " model(", shape(size(model)), ", rank ", join(unique(ranks(model)), ","), ")")
end

function Base.show(io::IO, ::MIME"text/plain", model::Model)
    show(io, model)
    isopen(model) || return
    facts = info(model)
    for mode in 1:ndims(model)
        mode_facts = mode_info(model, mode)
        print(io, "\n  mode ", mode, " ", model.modes[mode], ": ", grouped(mode_facts.rows), " of ", grouped(mode_facts.dim),
            " rows, rank ", mode_facts.rank)
        model.labels[mode] === nothing || print(io, ", named")
    end
    for number in 1:facts.matrices
        coupled = matrix(model, number)
        print(io, "\n  matrix ", number, " on mode ", coupled.mode, ": ", coupled.kind, coupled.weight == 0 ? ", left out by the fit" : ", weight $(coupled.weight)")
        coupled.kind === :graph || print(io, ", ", grouped(coupled.columns), " columns")
    end
    facts.samples == 0 || print(io, "\n  ", facts.samples, " posterior samples")
    show_errors(io, record(model))
end

"Prints the errors of the model itself, which the record has: that of its best epoch, or of the mean of its samples."
function show_errors(io, record)
    errors = [name => get(record, key, NaN) for (name, key) in
        ("training" => :train_rmse, "validation" => :valid_rmse, "test" => :test_rmse)]
    filter!(((name, error),) -> isfinite(error), errors)
    haskey(record, :epochs) && print(io, "\n  ", record[:epochs], " epochs")
    get(record, :reason, "epochs") == "epochs" || print(io, ", stopped (", record[:reason], ")")
    isempty(errors) || print(io, "\n  RMSE: ", join(("$name $(short(error))" for (name, error) in errors), ", "))
    !isempty(errors) && haskey(record, :best_epoch) && print(io, " (epoch ", record[:best_epoch], ")")
end

function Base.show(io::IO, ranking::Ranking)
    names = ranking.names === nothing ? string.(ranking.rows) : ranking.names
    print(io, "Ranking(", join(("$name $(short(score))" for (name, score) in zip(names, ranking.scores)), ", "), ")")
end

function Base.show(io::IO, ::MIME"text/plain", ranking::Ranking)
    print(io, length(ranking), " rows:")
    for place in 1:length(ranking)
        print(io, "\n", lpad(place, 4), "  ", rpad(short(ranking.scores[place]), 8), "  ", lpad(ranking.rows[place], 6))
        ranking.names === nothing || print(io, "  ", ranking.names[place])
    end
end

Base.show(io::IO, concept::Concept) =
    print(io, "concept ", concept.column, ": strength ", short(concept.strength), ", effect ", short(concept.effect))

function show_concept(io, concept)
    print(io, concept)
    isempty(concept.largest_columns) ||
        print(io, "\n    with   ", join((string(c.name, " ", @sprintf("%+.2f", c.share)) for c in concept.largest_columns), ", "))
    names(ranking) = ranking.names === nothing ? string.("row ", ranking.rows) : ranking.names
    print(io, "\n    large  ", join(at_most(5, names(concept.largest)), ", "))
    print(io, "\n    small  ", join(at_most(5, names(concept.smallest)), ", "))
end

Base.show(io::IO, ::MIME"text/plain", concept::Concept) = show_concept(io, concept)

function Base.show(io::IO, ::MIME"text/plain", concepts::Concepts)
    print(io, length(concepts), " concepts of mode ", concepts.mode, ":")
    for concept in concepts
        print(io, "\n  ")
        show_concept(io, concept)
    end
end

Base.show(io::IO, label::ClusterLabel) = print(io, label.name, ": ", label.rows_in_cluster, " of its rows, ", label.rows_overall,
    " of all rows, lift ", @sprintf("%.1f", label.lift), ", p ", @sprintf("%.2g", label.p_value))
Base.show(io::IO, cluster::Cluster) = print(io, "cluster of ", grouped(cluster.rows), " rows, radius ", short(cluster.radius))

function Base.show(io::IO, ::MIME"text/plain", clusters::Clusters)
    print(io, grouped(length(clusters.rows)), " rows of mode ", clusters.mode, " in ", length(clusters), " clusters, ",
        @sprintf("%.1f%%", 100 * clusters.explained_variance), " of the variance is between clusters")
    for (number, cluster) in enumerate(clusters)
        print(io, "\n  ", number, ". ", cluster)
        foreach(label -> print(io, "\n       ", label), at_most(3, cluster.labels))
        names = cluster.members.names === nothing ? string.("row ", cluster.members.rows) : cluster.members.names
        isempty(names) || print(io, "\n       nearest to the centre: ", join(at_most(3, names), ", "))
    end
end

function Base.show(io::IO, trial::Trial)
    print(io, "trial ", trial.number, ": ")
    trial.error === nothing ? print(io, "validation RMSE ", short(trial.valid_rmse)) : print(io, "failed, ", trial.error)
    print(io, ", ", trial.epochs, " epochs, ", @sprintf("%.2f", trial.seconds), " s")
end

Base.show(io::IO, option::OptionInfo) = print(io, option.name, " = ", option.default)

function option_range(option::OptionInfo)
    isempty(option.choices) || return join(option.choices, ", ")
    option.type === :bool && return "true, false"
    return string(option.min, " to ", option.max)
end

function Base.show(io::IO, ::MIME"text/plain", option::OptionInfo)
    print(io, option, "\n  ", option.help, "\n  values: ", option_range(option))
end

function Base.show(io::IO, ::MIME"text/plain", table::OptionTable)
    print(io, length(table), " options:")
    width = maximum(option -> length(string(option.name)), table)
    for option in table
        print(io, "\n  ", rpad(string(option.name), width), "  ", rpad(option.default, 8), "  ", option.help)
    end
end
