"""proof.c in Python, by ctypes without a wrapper. Arguments: the shared library, the data folder."""

import ctypes as c
import sys

lib = c.CDLL(sys.argv[1])
lib.s3cmtf_error_message.restype = c.c_char_p
folder = sys.argv[2].encode()
U32, F64, EVENT_EPOCH = 1, 4, 1


class Progress(c.Structure):
    _fields_ = (
        [("size", c.c_uint64)]
        + [(name, c.c_int32) for name in ("state", "event", "stop_reason", "kernel")]
        + [(name, c.c_uint64) for name in ("threads", "epoch", "epochs", "rollbacks")]
        + [
            (name, c.c_double)
            for name in (
                "eta loss train_rmse test_rmse valid_rmse update_seconds eval_seconds entries_per_second"
            ).split()
        ]
        + [("message", c.c_char_p)]
    )


class Indices(c.Structure):
    _fields_ = (
        ("modes", c.POINTER(c.c_void_p)),
        ("count", c.c_uint64),
        ("stride", c.c_uint64),
        ("type", c.c_int32),
        ("base", c.c_int32),
    )


error = c.c_void_p()
assert lib.s3cmtf_error_new(c.byref(error)) == 0


def call(name, *arguments):
    status = getattr(lib, name)(*arguments, error)
    if status:
        raise RuntimeError(f"{name}: {status}: {lib.s3cmtf_error_message(error).decode()}")


def made(name, *arguments):
    handle = c.c_void_p()
    call(name, *arguments, c.byref(handle))
    return handle


@c.CFUNCTYPE(c.c_int32, c.POINTER(Progress), c.c_void_p)
def show(progress, _user):
    p = progress.contents
    assert p.size == c.sizeof(Progress)
    if p.event == EVENT_EPOCH:
        print("%d %.17g %.17g" % (p.epoch, p.train_rmse, p.test_rmse))
    return p.epoch == 3


train = made("s3cmtf_coo_open", folder + b"/tensor.train.tns", 0, None, None)
test = made("s3cmtf_coo_open", folder + b"/tensor.test.tns", 0, None, None)
problem = made("s3cmtf_problem_new", train)
options = made("s3cmtf_options_new", b"paper")
call("s3cmtf_options_parse", options, b"rank=4 epochs=1000000")
fit = made("s3cmtf_fit_new", problem, options)
call("s3cmtf_fit_set_test", fit, test)
call("s3cmtf_fit_set_callback", fit, show, None)
model = made("s3cmtf_fit_run", fit)

index = c.c_uint32 * 3
columns = index(0, 1, 2), index(0, 10, 100), index(0, 1, 2)
modes = (c.c_void_p * 3)(*(c.addressof(column) for column in columns))
cells = Indices(modes=modes, count=3, type=U32)
predictions = (c.c_double * 3)()
call("s3cmtf_model_predict", model, c.byref(cells), predictions, c.c_uint64(3), F64, None)
print("%.17g %.17g %.17g" % tuple(predictions))

try:
    call("s3cmtf_options_set", options, b"rnak", b"4")
except RuntimeError as e:
    assert "rnak" in str(e)
else:
    raise AssertionError("an unknown option was accepted")

one = c.c_double()
call("s3cmtf_model_predict_cell", model, (c.c_uint64 * 3)(1, 10, 1), c.byref(one))
assert one.value == predictions[1]

for kind, handle in (
    ("model", model), ("fit", fit), ("options", options), ("problem", problem), ("coo", test), ("coo", train),
    ("error", error),
):  # fmt: skip
    getattr(lib, f"s3cmtf_{kind}_free")(handle)
