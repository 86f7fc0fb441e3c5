"""The progress of a study: a bar in the terminal or the notebook."""

from __future__ import annotations

import warnings
from types import TracebackType
from typing import Any

__all__ = ["Progress"]


class Progress:
    """A bar that appears at the first call and counts runs."""

    def __init__(self, shown: bool) -> None:
        self._shown, self._bar = shown, None

    _bar: Any

    def __enter__(self) -> Progress:
        return self

    def __call__(self, done: int, planned: int) -> None:
        """Show that this many of the planned runs are done."""
        if not self._shown:
            return
        if self._bar is None:
            with warnings.catch_warnings():
                # Without ipywidgets the bar in a notebook is text, which needs no advice.
                warnings.simplefilter("ignore")
                from tqdm.auto import tqdm

            self._bar = tqdm(total=planned, initial=done, unit="run")
        self._bar.update(done - self._bar.n)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.close()
