"""Fits."""

import os
from dataclasses import dataclass
from typing import Any, Callable, Iterable, List, Optional, Sequence, Tuple, Union

from ._aligned import aligned_entries, entries_explained, not_a_tensor
from ._library import Handle, PathLike, Running, call, create, ffi, kind_of, lib, path_bytes, struct
from ._progress import FitBar
from ._text import require_file
from .errors import warn
from .matrix import Matrix, new_problem
from .model import Model
from .options import new_options, options_text
from .tensor import Tensor


@dataclass(frozen=True)
class Progress:
    """The state of a fit. Quantities that were not measured are NaN."""

    #: The number of epochs completed.
    epoch: int
    #: The maximum number of epochs.
    epochs: int
    #: The number of rollbacks after divergence.
    rollbacks: int
    #: The learning rate of the last epoch.
    eta: float
    #: The training loss after the last epoch.
    loss: float
    train_rmse: float
    test_rmse: float
    valid_rmse: float
    #: Tensor and matrix entries per second of the last epoch.
    entries_per_second: float


ProgressCallback = Callable[[Progress], Any]
#: Seconds between two looks at a fit, and the longest delay of Ctrl-C.
_POLL_SECONDS = 0.05


def fit(
    tensor: Any,
    matrices: Union[Matrix, Sequence[Matrix]] = (),
    *,
    test: Optional[Tensor] = None,
    valid: Optional[Tensor] = None,
    init: Optional[Model] = None,
    checkpoint: Optional[PathLike] = None,
    resume: Optional[PathLike] = None,
    progress: Union[bool, ProgressCallback] = False,
    preset: Optional[str] = None,
    **options: Any,
) -> Model:
    """Fits a model to a tensor and the matrices coupled to its modes.

    tensor: a Tensor, or the path of a file for Tensor.open().
    matrices: a Matrix, or a sequence of them.
    test: entries on which the error is measured after every epoch; they do not influence the fit. Rows with labels are
        matched by label, here and in valid.
    valid: validation entries, which select the best epoch and, with the option patience, stop the fit.
    init: a model to start from.
    checkpoint: a file in which the state of the fit is saved every checkpoint_every epochs.
    resume: a checkpoint to continue from. Data and options must be those of the interrupted fit.
    progress: True shows a progress bar (of tqdm, if it is installed). A function is called with a Progress about every
        50 ms while epochs end; if it returns True, the fit ends with the model of the last epoch.
    preset: the preset of options, such as "paper"; s3cmtf.presets() lists them.

    The fit runs in threads of the library. Ctrl-C ends it and raises KeyboardInterrupt. Warnings of the fit are issued as
    S3cmtfWarning.

    Options (None is the default of the preset):
    """
    data, coupled = data_and_matrices(tensor, matrices)
    problem, modes, sizes, columns = new_problem(data, coupled)
    held_out = [
        None if entries is None else aligned_entries(entries, modes, sizes, what, "train")[0]
        for entries, what in ((test, "test"), (valid, "valid"))
    ]
    task = create("fit", lib.s3cmtf_fit_new, problem, new_options(preset, options), keep=(problem, held_out))
    for entries, function in zip(held_out, (lib.s3cmtf_fit_set_test, lib.s3cmtf_fit_set_valid)):
        if entries is not None:
            call(function, task, entries)
    if init is not None:
        if not isinstance(init, Model):
            raise TypeError(f"init must be a Model, not {kind_of(init)}; read one with Model.load(path)")
        modes.check(init._modes, "init")
        call(lib.s3cmtf_fit_set_init, task, init._use())
    if checkpoint is not None:
        call(lib.s3cmtf_fit_set_checkpoint, task, path_bytes(checkpoint))
    if resume is not None:
        require_file(resume)
        call(lib.s3cmtf_fit_set_resume, task, path_bytes(resume))
    named = ((data, "tensor"), (test, "test"), (valid, "valid"), *((of.tensor, "a matrix") for of in coupled))
    with entries_explained(*named):
        model = Model._of(_run(task, progress), modes, columns)
    for line in model._record_lines("note"):
        if line.split(" ", 2)[1] == "warning":
            warn(line.split(" ", 2)[2])
    return model


fit.__doc__ = f"{(fit.__doc__ or '').rstrip()}\n\n{options_text()}\n"


def data_and_matrices(tensor: Any, matrices: Union[Matrix, Sequence[Matrix]]) -> Tuple[Tensor, List[Matrix]]:
    """Returns the data of a fit: a tensor, which may be given as a path, and a list of matrices."""
    if isinstance(tensor, (str, os.PathLike)):
        tensor = Tensor.open(tensor)
    if not isinstance(tensor, Tensor):
        raise not_a_tensor(tensor, "tensor")
    if not isinstance(matrices, (Matrix, Iterable)):
        raise TypeError(f"matrices are a Matrix or a sequence of them, not {matrices!r}")
    return tensor, [matrices] if isinstance(matrices, Matrix) else list(matrices)


def callback_of(progress: Any, bar: Any) -> Optional[Callable[[Any], Any]]:
    """Returns the function that shows progress: that of a bar, or the one that is given; None if there is neither."""
    if not isinstance(progress, bool) and progress is not None and not callable(progress):
        raise TypeError(f"progress is True, False or a function, not {progress!r}")
    return bar if progress is True else (progress or None)


def _run(task: Handle, progress: Union[bool, ProgressCallback]) -> Handle:
    """Runs a fit in the background and returns the handle of its model."""
    running = ffi.new("int32_t *", 1)
    bar = FitBar() if progress is True else None
    callback: Optional[ProgressCallback] = callback_of(progress, bar and bar.update)
    epoch = 0
    with Running():
        call(lib.s3cmtf_fit_start, task)
        try:
            while running[0]:
                call(lib.s3cmtf_fit_wait, task, _POLL_SECONDS, running)
                if callback is not None:
                    state = _progress(task)
                    if state.epoch > epoch:
                        epoch = state.epoch
                        if callback(state):
                            lib.s3cmtf_fit_cancel(task.pointer)
        except BaseException:
            lib.s3cmtf_fit_cancel(task.pointer)
            call(lib.s3cmtf_fit_wait, task, -1.0, running)
            raise
        finally:
            if bar:
                bar.close()
        return create("model", lib.s3cmtf_fit_take, task)


def _progress(task: Handle) -> Progress:
    state = struct("progress")
    call(lib.s3cmtf_fit_get_progress, task, state)
    return Progress(**{name: getattr(state, name) for name in Progress.__annotations__})
