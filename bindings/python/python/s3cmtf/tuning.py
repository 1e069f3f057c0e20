"""Hyperparameter search."""

import queue
from dataclasses import dataclass
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple, Union

from ._aligned import aligned_entries, entries_explained
from ._library import NULL, Handle, PathLike, call, create, ffi, interruptible, lib, path_bytes, string, struct, text, utf8, whole
from ._progress import FitBar
from ._tables import html_table, text_table
from ._text import require_file
from .errors import ArgumentError
from .fitting import callback_of, data_and_matrices
from .matrix import Matrix, new_problem
from .options import new_options, option_text, read_options
from .tensor import Tensor


@dataclass(frozen=True)
class Trial:
    """The result of a trial."""

    #: The number of the trial; 0 is the fit with the given options.
    number: int
    #: The number of rungs at which it was evaluated, and of epochs at the last of them.
    rungs: int
    epochs: int
    #: RMSE on the validation entries there; NaN if it failed.
    valid_rmse: float
    #: Seconds of computation.
    seconds: float
    #: Why the trial failed, or None.
    error: Optional[str]
    #: All options of the trial, without "auto".
    options: Dict[str, Any]
    #: The options as lines NAME=VALUE, for `s3cmtf fit --config` of the command-line program.
    config: str


#: The options in tables of trials.
_SHOWN = ("model", "rank", "eta", "lambda_reg")
_HEAD = ("trial", "valid RMSE", "epochs", *_SHOWN)


class Trials(List[Trial]):
    """The trials of a search, the best first."""

    @property
    def best_options(self) -> Dict[str, Any]:
        """The options of the best trial, for s3cmtf.fit(tensor, **options)."""
        return self[0].options

    def _rows(self) -> List[Tuple[Any, ...]]:
        return [(of.number, f"{of.valid_rmse:.4f}", of.epochs, *(of.options.get(name) for name in _SHOWN)) for of in self]

    def __repr__(self) -> str:
        return text_table(f"{len(self)} trials", _HEAD, self._rows())

    def _repr_html_(self) -> str:
        return html_table("Trials", _HEAD, self._rows())


@dataclass(frozen=True)
class TuneProgress:
    """The state of a search after a trial."""

    number: int
    valid_rmse: float
    #: The number of trials evaluated at this rung so far, and of all its trials.
    done: int
    total: int
    #: The lowest RMSE at this rung so far.
    best_rmse: float


def tune(
    tensor: Any,
    matrices: Union[Matrix, Sequence[Matrix]] = (),
    *,
    trials: int = 200,
    rungs: int = 3,
    valid: Optional[Tensor] = None,
    valid_fraction: float = 0.1,
    fit_threads: int = 1,
    ranges: Optional[Mapping[str, Any]] = None,
    checkpoint: Optional[PathLike] = None,
    resume: Optional[PathLike] = None,
    progress: Union[bool, Callable[[TuneProgress], Any]] = False,
    preset: Optional[str] = None,
    **options: Any,
) -> Trials:
    """Searches options of a fit by random search with successive halving. Returns the trials, the best first.

    tensor, matrices, preset, options: as for s3cmtf.fit(). All trials have the options in common, but for those sampled.
    trials, rungs: the size of the search. fit_threads: the number of threads of each fit.
    valid, valid_fraction: validation entries, or the fraction of the tensor that is held out for validation.
    ranges: values from which options are sampled, by name: a list, or a string such as "0.005..0.1".
    checkpoint, resume: a file in which the state of the search is saved, and one to continue from.
    progress: True shows a progress bar. A function is called with a TuneProgress after every trial, on this thread; if it
        returns True, the search ends with the trials evaluated so far.

    Ctrl-C ends the search and raises KeyboardInterrupt.
    """
    for name, number in (("trials", trials), ("rungs", rungs)):
        if whole(number, name) < 1:
            raise ArgumentError(f"{name} is {number}; it must be at least 1")
    if not 0 < valid_fraction < 1:
        raise ArgumentError(f"valid_fraction is {valid_fraction}; it must be above 0 and below 1")
    data, coupled = data_and_matrices(tensor, matrices)
    problem, modes, sizes, _ = new_problem(data, coupled)
    request = struct("tune_request", trials=trials, rungs=rungs, fit_threads=fit_threads, valid_fraction=valid_fraction)
    held_out = None
    if valid is not None:
        held_out = aligned_entries(valid, modes, sizes, "valid", "train")[0]
        request.valid = held_out.pointer
    arguments = (problem, new_options(preset, options), request)
    search = create("tune", lib.s3cmtf_tune_new, *arguments, keep=(problem, held_out))
    if not isinstance(ranges, (Mapping, type(None))):
        raise TypeError(f"ranges is a mapping from options to values, such as {{'rank': [8, 16]}}, not {type(ranges).__name__}")
    for name, values in (ranges or {}).items():
        call(lib.s3cmtf_tune_set_range, search, utf8(name), utf8(option_text(values)))
    if checkpoint is not None:
        call(lib.s3cmtf_tune_set_checkpoint, search, path_bytes(checkpoint))
    if resume is not None:
        require_file(resume)
        call(lib.s3cmtf_tune_set_resume, search, path_bytes(resume))
    with entries_explained((data, "tensor"), (valid, "valid"), *((of.tensor, "a matrix") for of in coupled)):
        _run(search, progress)
    count = ffi.new("uint64_t *")
    call(lib.s3cmtf_tune_get_count, search, count)
    return Trials(_trial(search, place) for place in range(count[0]))


def _run(search: Handle, progress: Union[bool, Callable[[TuneProgress], Any]]) -> None:
    bar = FitBar("trial") if progress is True else None
    shown: Optional[Callable[[TuneProgress], Any]] = callback_of(progress, bar and bar.update_trial)
    reports: "queue.SimpleQueue[TuneProgress]" = queue.SimpleQueue()

    # Runs on the thread of the search: only copies.
    @ffi.callback("s3cmtf_trial_callback", error=1)  # type: ignore[untyped-decorator]
    def on_trial(trial: Any, _user: Any) -> int:
        reports.put(TuneProgress(**{name: getattr(trial, name) for name in TuneProgress.__annotations__}))
        return 0

    if shown is not None:
        call(lib.s3cmtf_tune_set_callback, search, on_trial, NULL)

    def show(cancel: Any) -> None:
        while shown is not None and not reports.empty():
            if shown(reports.get()):
                lib.s3cmtf_cancel_request(cancel)

    def work(cancel: Any) -> None:
        call(lib.s3cmtf_tune_set_cancel, search, cancel)
        call(lib.s3cmtf_tune_run, search)

    try:
        interruptible(work, show)
    finally:
        if bar:
            bar.close()


def _trial(search: Handle, place: int) -> Trial:
    found = struct("trial")
    call(lib.s3cmtf_tune_get_trial, search, place, found)
    options = create("options", lib.s3cmtf_tune_get_options, search, place)
    return Trial(
        number=int(found.number),
        rungs=int(found.rungs),
        epochs=int(found.epochs),
        valid_rmse=found.valid_rmse,
        seconds=found.seconds,
        error=None if found.error == NULL else text(found.error),
        options=read_options(options),
        config=string(lib.s3cmtf_tune_get_text, search, place),
    )
