"""Fits."""

import json
import os
from dataclasses import dataclass
from typing import Any, Callable, Dict, Iterable, List, Mapping, Optional, Sequence, Tuple, Union

from ._aligned import aligned_entries, entries_explained, not_a_tensor
from ._library import (
    Handle,
    PathLike,
    Running,
    call,
    create,
    ffi,
    interruptible,
    kind_of,
    lib,
    path_bytes,
    string,
    struct,
    utf8,
)
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
    plan: Union[None, str, Mapping[str, Any]] = None,
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
    plan: a plan to follow, as s3cmtf.plan() or Model.plan returns it, or its JSON text. The model has the same parameters, bit by
        bit, as that of the fit whose plan it is. Data and options must be those of the plan; options that are not given are
        taken from it.
    progress: True shows a progress bar (of tqdm, if it is installed). A function is called with a Progress about every
        50 ms while epochs end; if it returns True, the fit ends with the model of the last epoch.
    preset: the preset of options, such as "paper"; s3cmtf.presets() lists them.

    The fit runs in threads of the library. Ctrl-C ends it and raises KeyboardInterrupt. Warnings of the fit are issued as
    S3cmtfWarning.

    Options (None is the default of the preset):
    """
    task = _Task(tensor, matrices, test, valid, init, new_options(preset, options))
    if checkpoint is not None:
        call(lib.s3cmtf_fit_set_checkpoint, task.handle, path_bytes(checkpoint))
    if resume is not None:
        require_file(resume)
        call(lib.s3cmtf_fit_set_resume, task.handle, path_bytes(resume))
    if plan is not None:
        call(lib.s3cmtf_fit_set_plan, task.handle, utf8(_plan_text(plan)))
    with entries_explained(*task.named):
        model = Model._of(_run(task.handle, progress), task.modes, task.columns)
    for line in model._record_lines("note"):
        if line.split(" ", 2)[1] == "warning":
            warn(line.split(" ", 2)[2])
    return model


def plan(
    tensor: Any,
    matrices: Union[Matrix, Sequence[Matrix]] = (),
    *,
    valid: Optional[Tensor] = None,
    init: Optional[Model] = None,
    preset: Optional[str] = None,
    **options: Any,
) -> Dict[str, Any]:
    """Returns what a fit with these arguments would do, and why, without fitting: every option resolved, the matrices, and for each
    choice its evidence. The arguments are those of fit(), which follows the plan with plan=. The fields are those of the JSON
    of `s3cmtf fit --dry-run --json`, so that modes and matrices count from 1."""
    task = _Task(tensor, matrices, None, valid, init, new_options(preset, options))

    def make(cancel: Any) -> str:
        call(lib.s3cmtf_fit_set_cancel, task.handle, cancel)
        return string(lib.s3cmtf_fit_plan, task.handle)

    with entries_explained(*task.named):
        made: Dict[str, Any] = json.loads(interruptible(make))
    return made


def _plan_text(given: Union[str, Mapping[str, Any]]) -> str:
    """Returns a plan as JSON."""
    if isinstance(given, str):
        return given
    if not isinstance(given, Mapping):
        raise TypeError(f"plan is a dictionary or its JSON text, not {kind_of(given)}; s3cmtf.plan() returns one")
    return json.dumps(given)


fit.__doc__ = f"{(fit.__doc__ or '').rstrip()}\n\n{options_text()}\n"


class _Task:
    """A fit that has not begun."""

    def __init__(
        self,
        tensor: Any,
        matrices: Union[Matrix, Sequence[Matrix]],
        test: Optional[Tensor],
        valid: Optional[Tensor],
        init: Optional[Model],
        chosen: Handle,
    ) -> None:
        data, coupled = data_and_matrices(tensor, matrices)
        problem, self.modes, sizes, self.columns = new_problem(data, coupled)
        held_out = [
            None if entries is None else aligned_entries(entries, self.modes, sizes, what, "train")[0]
            for entries, what in ((test, "test"), (valid, "valid"))
        ]
        self.handle = create("fit", lib.s3cmtf_fit_new, problem, chosen, keep=(problem, held_out))
        for entries, function in zip(held_out, (lib.s3cmtf_fit_set_test, lib.s3cmtf_fit_set_valid)):
            if entries is not None:
                call(function, self.handle, entries)
        if init is not None:
            if not isinstance(init, Model):
                raise TypeError(f"init must be a Model, not {kind_of(init)}; read one with Model.load(path)")
            self.modes.check(init._modes, "init")
            call(lib.s3cmtf_fit_set_init, self.handle, init._use())
        #: The entries, and what errors call them.
        self.named = ((data, "tensor"), (test, "test"), (valid, "valid"), *((of.tensor, "a matrix") for of in coupled))


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
