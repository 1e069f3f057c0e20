# Column tables: named tuples of vectors, data frames and other objects with vectors as properties, and vectors of named tuples.

"The names and vectors of a table, in order."
struct ColumnTable
    names::Vector{Symbol}
    columns::Vector{AbstractVector}
end

is_table(::NamedTuple) = true
is_table(::AbstractVector{<:NamedTuple}) = true
is_table(::Union{AbstractArray,Tuple,AbstractString,Number}) = false
is_table(::AbstractDict{<:Union{Symbol,AbstractString}}) = true
is_table(object) = !isempty(propertynames(object)) && all(name -> getproperty(object, name) isa AbstractVector, propertynames(object))

column_table(table::ColumnTable) = table
column_table(table::NamedTuple) = ColumnTable([keys(table)...], check_columns(keys(table), values(table)))
column_table(rows::AbstractVector{NamedTuple{names,T}}) where {names,T} =
    ColumnTable([names...], AbstractVector[[row[name] for row in rows] for name in names])
function column_table(table::AbstractDict)
    names = sort!(collect(keys(table)))
    return ColumnTable(Symbol.(names), check_columns(names, [table[name] for name in names]))
end
function column_table(object)
    names = [propertynames(object)...]
    return ColumnTable(Symbol.(names), check_columns(names, [getproperty(object, name) for name in names]))
end

function check_columns(names, columns)
    for (name, column) in zip(names, columns)
        column isa AbstractVector || throw(ArgumentError("column $name is $(summary(column)); a column is a vector"))
        length(column) == length(first(columns)) || throw(DimensionMismatch(
            "column $name has $(length(column)) rows, column $(first(names)) has $(length(first(columns)))"))
    end
    return collect(AbstractVector, columns)
end

function column(table::ColumnTable, name)
    place = name isa Integer ? Int(name) : findfirst(==(Symbol(name)), table.names)
    place isa Int && 1 <= place <= length(table.names) && return table.columns[place]
    throw(ArgumentError("there is no column $(repr(name)); the columns are $(join(table.names, ", "))"))
end

function column_name(table::ColumnTable, name)
    column(table, name)
    return name isa Integer ? table.names[name] : Symbol(name)
end

"Names of value columns, as in text files."
const value_names = ("rating", "value", "stars", "score", "count")

"""
The value column that is not named, among the columns that are not one of `others`: the only one; else the one with a usual name; else
the only one with numbers.
"""
function default_value(table::ColumnTable, others)
    open = filter(name -> !(name in others), table.names)
    isempty(open) && throw(ArgumentError("the table has no value column; its columns are $(join(table.names, ", "))"))
    named = filter(name -> lowercase(strip(string(name))) in value_names, open)
    numbers = filter(name -> !is_labelled(column(table, name)), open)
    for found in (open, named, numbers)
        length(found) == 1 && return only(found)
    end
    isempty(numbers) && throw(ArgumentError("the table has no value column: none of $(join(open, ", ")) has numbers"))
    candidates = isempty(named) ? numbers : named
    why = isempty(named) ? "have numbers, and none is called $(join(value_names, ", ", " or "))" : "may have them"
    throw(ArgumentError("which column has the values? $(join(candidates, ", ")) $why; name it, such as " *
        "Tensor(table; value=$(repr(last(candidates)))) (and the index columns with columns)"))
end

"""
The columns of a table for modes, of those in `candidates`: the columns with the names of the modes. Modes without a name (`mode1`)
have the remaining columns, in order.
"""
function mode_columns(table::ColumnTable, candidates, modes)
    unnamed = [mode for (mode, name) in enumerate(modes) if name === default_mode(mode) && !(name in candidates)]
    expected = "the table has the columns $(join(table.names, ", ")); those of the modes are $(join(modes, ", "))"
    for mode in setdiff(eachindex(modes), unnamed)
        modes[mode] in candidates || throw(ArgumentError("there is no column $(modes[mode]): $expected"))
    end
    isempty(unnamed) && return modes
    others = filter(name -> !(name in modes), candidates)
    length(others) == length(unnamed) || throw(DimensionMismatch(expected))
    columns = copy(modes)
    columns[unnamed] = others
    return columns
end

"Names of the index columns, and of the value and weight columns or `nothing`."
function column_roles(table::ColumnTable, columns, value, weight)
    if value === nothing
        others = Symbol[column_name(table, name) for name in something(columns, ())]
        weight === nothing || push!(others, column_name(table, weight))
        value = default_value(table, others)
    end
    used = Any[value === false ? nothing : column_name(table, value), weight === nothing ? nothing : column_name(table, weight)]
    index = columns === nothing ? filter(name -> !(name in used), table.names) :
        Symbol[column_name(table, name) for name in columns]
    isempty(index) && throw(ArgumentError("the table has no index columns; its columns are $(join(table.names, ", "))"))
    return index, value === false ? nothing : value, weight
end

# Numbers are row numbers; everything else is a name.
is_name_type(T) = !(T <: Real) || T <: Bool
is_labelled(column::AbstractVector) = is_name_type(Base.nonmissingtype(eltype(column)))
is_labelled(column::AbstractVector{Any}) = any(value -> is_name_type(typeof(value)), skipmissing(column))

function label_rows(column::AbstractVector, labels::Labels, name)
    rows = Vector{Int}(undef, length(column))
    for (i, value) in enumerate(column)
        ismissing(value) && throw(ArgumentError("row $i of column $name is missing; leave the row out"))
        rows[i] = row!(labels, value isa AbstractString ? value : string(value))
    end
    return rows
end

"""
Returns the row numbers in a column and the names of the rows, or `nothing` if the column has row numbers. `known` are names with
fixed rows; other names follow them.
"""
function column_rows(column::AbstractVector, known::ModeLabels, strings::Bool, name)
    if strings || known !== nothing || is_labelled(column)
        labels = known === nothing ? Labels() : copy(known)
        rows = label_rows(column, labels, name)
        return rows, known !== nothing && length(known) == length(labels) ? known : labels
    end
    return column, known
end
