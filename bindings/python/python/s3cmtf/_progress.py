"""Progress bars: of tqdm if it is installed, otherwise lines on standard error."""

import sys
from typing import Any, Optional


class _Lines:
    """Rewrites one line on standard error."""

    def __init__(self, unit: str) -> None:
        self.n = 0
        self.total: Optional[int] = None
        self._unit = unit
        self._text = ""

    def set_postfix_str(self, text: str, refresh: bool = True) -> None:
        self._text = text

    def refresh(self) -> None:
        sys.stderr.write(f"\r{self._unit} {self.n} of {self.total}: {self._text}")
        sys.stderr.flush()

    def close(self) -> None:
        if self.total is not None:
            sys.stderr.write("\n")


def _bar(unit: str) -> Any:
    try:
        from tqdm.auto import tqdm
    except ImportError:
        return _Lines(unit)
    return tqdm(unit=unit)


class FitBar:
    """A bar of the epochs of a fit, or the trials of a search."""

    def __init__(self, unit: str = "epoch") -> None:
        self._bar = _bar(unit)

    def update(self, progress: Any) -> None:
        """Shows the state of a fit."""
        errors = (("train", progress.train_rmse), ("valid", progress.valid_rmse), ("test", progress.test_rmse))
        measured = (f"{name} RMSE {error:.4f}" for name, error in errors if error == error)
        self.show(progress.epoch, progress.epochs, ", ".join(measured))

    def update_trial(self, progress: Any) -> None:
        """Shows the state of a search."""
        self.show(progress.done, progress.total, f"best RMSE {progress.best_rmse:.4f}")

    def show(self, done: int, total: int, text: str) -> None:
        """Shows how much is done."""
        self._bar.total, self._bar.n = total, done
        self._bar.set_postfix_str(text, refresh=False)
        self._bar.refresh()

    def close(self) -> None:
        """Ends the bar."""
        self._bar.close()
