# proof.c in Julia, by ccall without a wrapper. Arguments: the shared library, the data folder.
const lib = ARGS[1]
const U32, F64, EVENT_EPOCH = Int32(1), Int32(4), Int32(1)

struct Progress
    size::UInt64
    state::Int32
    event::Int32
    stop_reason::Int32
    kernel::Int32
    threads::UInt64
    epoch::UInt64
    epochs::UInt64
    rollbacks::UInt64
    eta::Float64
    loss::Float64
    train_rmse::Float64
    test_rmse::Float64
    valid_rmse::Float64
    update_seconds::Float64
    eval_seconds::Float64
    entries_per_second::Float64
    message::Ptr{UInt8}
end

struct Indices
    modes::Ptr{Ptr{UInt32}}
    count::UInt64
    stride::UInt64
    type::Int32
    base::Int32
end

using Printf

const err = Ref{Ptr{Cvoid}}()
ccall((:s3cmtf_error_new, lib), Int32, (Ref{Ptr{Cvoid}},), err) == 0 || error("no error handle")

check(status) = status == 0 || error(unsafe_string(ccall((:s3cmtf_error_message, lib), Ptr{UInt8}, (Ptr{Cvoid},), err[])))

function show_epoch(progress::Ptr{Progress}, ::Ptr{Cvoid})::Int32
    p = unsafe_load(progress)
    p.event == EVENT_EPOCH && @printf("%d %.17g %.17g\n", p.epoch, p.train_rmse, p.test_rmse)
    return Int32(p.epoch == 3)
end

function open_coo(path)
    out = Ref{Ptr{Cvoid}}()
    check(ccall((:s3cmtf_coo_open, lib), Int32,
        (Cstring, Int32, Ptr{Cvoid}, Ptr{Cvoid}, Ref{Ptr{Cvoid}}, Ptr{Cvoid}), path, 0, C_NULL, C_NULL, out, err[]))
    return out[]
end

train, test = open_coo(joinpath(ARGS[2], "tensor.train.tns")), open_coo(joinpath(ARGS[2], "tensor.test.tns"))
problem, options, fit, model = (Ref{Ptr{Cvoid}}() for _ in 1:4)
check(ccall((:s3cmtf_problem_new, lib), Int32, (Ptr{Cvoid}, Ref{Ptr{Cvoid}}, Ptr{Cvoid}), train, problem, err[]))
check(ccall((:s3cmtf_options_new, lib), Int32, (Cstring, Ref{Ptr{Cvoid}}, Ptr{Cvoid}), "paper", options, err[]))
check(ccall((:s3cmtf_options_parse, lib), Int32, (Ptr{Cvoid}, Cstring, Ptr{Cvoid}), options[], "rank=4 epochs=1000000", err[]))
check(ccall((:s3cmtf_fit_new, lib), Int32, (Ptr{Cvoid}, Ptr{Cvoid}, Ref{Ptr{Cvoid}}, Ptr{Cvoid}), problem[], options[], fit, err[]))
check(ccall((:s3cmtf_fit_set_test, lib), Int32, (Ptr{Cvoid}, Ptr{Cvoid}, Ptr{Cvoid}), fit[], test, err[]))
const callback = @cfunction(show_epoch, Int32, (Ptr{Progress}, Ptr{Cvoid}))
check(ccall((:s3cmtf_fit_set_callback, lib), Int32, (Ptr{Cvoid}, Ptr{Cvoid}, Ptr{Cvoid}, Ptr{Cvoid}), fit[], callback, C_NULL, err[]))
check(ccall((:s3cmtf_fit_run, lib), Int32, (Ptr{Cvoid}, Ref{Ptr{Cvoid}}, Ptr{Cvoid}), fit[], model, err[]))

cells = UInt32[1 1 1; 2 11 2; 3 101 3]
numbers = zeros(3)
modes = [pointer(cells, 3 * n + 1) for n in 0:2]
GC.@preserve cells modes begin
    indices = Ref(Indices(pointer(modes), 3, 1, U32, 1))
    check(ccall((:s3cmtf_model_predict, lib), Int32,
        (Ptr{Cvoid}, Ref{Indices}, Ptr{Float64}, UInt64, Int32, Ptr{Cvoid}, Ptr{Cvoid}),
        model[], indices, numbers, 3, F64, C_NULL, err[]))
end
@printf("%.17g %.17g %.17g\n", numbers...)
for (kind, handle) in ((:model, model[]), (:fit, fit[]), (:options, options[]), (:problem, problem[]), (:coo, test), (:coo, train), (:error, err[]))
    @eval ccall(($(QuoteNode(Symbol("s3cmtf_", kind, "_free"))), lib), Cvoid, (Ptr{Cvoid},), $handle)
end
