# Options of a fit, which the library describes at run time.

const option_types = (bool=S3CMTF_OPTION_BOOL, integer=S3CMTF_OPTION_INTEGER, real=S3CMTF_OPTION_REAL,
    choice=S3CMTF_OPTION_CHOICE, integers=S3CMTF_OPTION_INTEGER_LIST, reals=S3CMTF_OPTION_REAL_LIST)

"Description of an option: `name`, `type`, `default`, `min`, `max`, `choices` and `help`."
struct OptionInfo
    name::Symbol
    type::Symbol
    default::String
    min::String
    max::String
    choices::Vector{String}
    help::String
end

"The word whose code is `number`."
function word(codes::NamedTuple, number)
    for (name, code) in pairs(codes)
        code == number && return name
    end
    return :other
end

function OptionInfo(index::Integer)
    info = read_struct(info -> s3cmtf_option_get_info(index, info), s3cmtf_option_info)
    text(field) = unsafe_string(getfield(info, field))
    choices = isempty(text(:choices)) ? String[] : String.(split(text(:choices), ','))
    return OptionInfo(Symbol(text(:name)), word(option_types, info.type), text(:default_value), text(:min), text(:max), choices, text(:help))
end

"A list of descriptions of options, which prints as a table."
struct OptionTable <: AbstractVector{OptionInfo}
    options::Vector{OptionInfo}
end
Base.size(table::OptionTable) = size(table.options)
Base.getindex(table::OptionTable, i::Int) = table.options[i]
function Base.getindex(table::OptionTable, name::Symbol)
    place = findfirst(option -> option.name === name, table.options)
    place === nothing && throw(KeyError(name))
    return table.options[place]
end

"""
    options()
    options(model)

The first form describes all options of a fit; `options()[:rank]` is one of them. The second returns the options with which a model was
fitted, with the values that the fit chose in place of `auto`, as a dictionary of texts.
"""
options() = OptionTable([OptionInfo(index) for index in 0:Int(s3cmtf_option_count())-1])

"""
    presets()

Returns the names of the presets, values of the keyword `preset` of `fit`.
"""
function presets()
    names = Symbol[]
    name = Ref{Cstring}(Cstring(C_NULL))
    while true
        try
            s3cmtf_preset_name(length(names), name)
        catch failure
            failure isa S3CMTFError && failure.status == S3CMTF_BAD_ARGUMENT && return names
            rethrow()
        end
        push!(names, Symbol(unsafe_string(name[])))
    end
end

option_text(value::Union{AbstractString,Symbol,Bool,Integer}) = string(value)
option_text(value::Real) = string(Float64(value))
option_text(values::Union{Tuple,AbstractVector}) = join(option_text.(values), ",")
option_text(value) = throw(ArgumentError("an option has the value $(repr(value)); it is a number, a word, true, false, or a list"))

set_option(options, name, value) = s3cmtf_options_set(options, string(name), option_text(value))

"""
Creates options from a preset or from the options of a checkpoint, then from `given`, a dictionary, named tuple or text of
NAME=VALUE pairs, then from keywords.
"""
function make_options(keywords; preset=nothing, given=nothing, resume=nothing)
    handle = if resume !== nothing
        checkpoint = create(output -> s3cmtf_model_load(resume, S3CMTF_OPEN_MAPPED, output), s3cmtf_model)
        use(model -> create(output -> s3cmtf_model_get_options(model, output), s3cmtf_options), checkpoint)
    else
        create(output -> s3cmtf_options_new(preset === nothing ? C_NULL : string(preset), output), s3cmtf_options)
    end
    use(handle) do options
        if given isa AbstractString
            s3cmtf_options_parse(options, given)
        elseif given !== nothing
            foreach(pair -> set_option(options, pair...), pairs(given))
        end
        foreach(pair -> set_option(options, pair...), pairs(keywords))
    end
    return handle
end

"All options of a handle as texts."
function option_values(handle::Handle{s3cmtf_options})
    use(handle) do pointer
        Dict(option.name => read_text((args...) -> s3cmtf_options_get(pointer, string(option.name), args...)) for option in options())
    end
end
