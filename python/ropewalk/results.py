"""Results of a study: tables, figures, the report, the results folder."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import _native
from .tables import Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Estimate", "Results", "colours", "open"]


def colours(names: Sequence[str]) -> list[tuple[str, str]]:
    """The report's colours of algorithms, or of other names in one figure: for white, and for black pages."""
    return [(light, dark) for (light, dark), _, _ in _native.looks(list(names))]


class Estimate:
    """A value in one cell of the sweep: its mean over the seeds."""

    parameters: dict[str, str]
    """The swept keys and their values; `flow` if there is one value per flow."""
    mean: float
    half_width: float | None
    """Half the width of the 95 % confidence interval (Student's t); None for a single run."""
    runs: int
    """The number of runs in the mean."""

    def __init__(self, parameters: dict[str, str], mean: float, half_width: float | None, runs: int) -> None:
        self.parameters, self.mean, self.half_width, self.runs = parameters, mean, half_width, runs

    def __repr__(self) -> str:
        keys = ", ".join(f"{key} = {value}" for key, value in self.parameters.items())
        half = "" if self.half_width is None else f" ± {self.half_width:.2g}"
        return f"<{keys}: {self.mean:.4g}{half}>"


class Results:
    """The runs of a study. Each table begins with the swept keys, `cell` and `seed`; docs/reference/results.md has the
    other columns, whose names end with their unit.
    """

    def __init__(self, native: _native.Results) -> None:
        """Results come from `Scenario.run` or `ropewalk.open`."""
        self._native = native

    @cached_property
    def manifest(self) -> dict[str, Any]:
        """A description of the runs and the program: the file manifest.json of a results folder."""
        manifest: dict[str, Any] = json.loads(self._native.manifest)
        return manifest

    @property
    def digest(self) -> str | None:
        """The digest of all runs, equal on every machine and to that of `ropewalk run`; None if runs are missing."""
        digest: str | None = self.manifest["digest"]
        return digest

    @property
    def complete(self) -> bool:
        """Whether every cell was run with every seed."""
        return bool(self.manifest["complete"])

    def __len__(self) -> int:
        """The number of runs."""
        return len(self._native)

    @cached_property
    def runs(self) -> Table:
        """One row per run."""
        return self._table("runs")

    @cached_property
    def flows(self) -> Table:
        """One row per flow of a run."""
        return self._table("flows")

    @cached_property
    def subflows(self) -> Table:
        """One row per subflow of a run."""
        return self._table("subflows")

    @cached_property
    def paths(self) -> Table:
        """One row per path of a run."""
        return self._table("paths")

    @cached_property
    def tunnels(self) -> Table:
        """One row per run with a tunnel."""
        return self._table("tunnels")

    @cached_property
    def cpu(self) -> Table:
        """One row per program whose CPU time was measured, in runs on a kernel."""
        return self._table("cpu")

    @cached_property
    def histograms(self) -> Table:
        """One row a bucket of the samples of a delay (`column`, such as `rtt_ms`) of a flow, a subflow or the tunnel
        (`subject`): its largest value `max_ms`, and the `count` of samples in it. A bucket is at most 1.6 % wide.
        """
        return self._table("histograms")

    @cached_property
    def series(self) -> Table:
        """One row per sample of a flow, a subflow or a path (`subject`), one column per quantity. Without `sample` in
        the scenario there are none.
        """
        return self._table("series")

    def _table(self, name: str) -> Table:
        return Table(self._native.table(name))

    def estimates(
        self,
        value: str,
        *,
        flow: str | None = None,
        only: Mapping[str, str | Sequence[str]] | None = None,
        by_flow: bool = False,
    ) -> list[Estimate]:
        """The mean of a flow's `value` in each cell, as in the report's tables: of the first flow, of `flow`
        (`FLOW/PATH` is a subflow), or with `by_flow` of each. `only` keeps cells with these values of swept keys.

        Raises `ResultsError` for an unknown value, with the nearest one.
        """
        kept = {key: [shown] if isinstance(shown, str) else list(shown) for key, shown in (only or {}).items()}
        return [Estimate(*row) for row in self._native.estimates(value, flow, kept, by_flow)]

    def figure(
        self,
        value: str = "goodput_mbps",
        *,
        x: str | None = None,
        lines: str | None = None,
        flow: str | None = None,
        only: Mapping[str, str | Sequence[str]] | None = None,
        ax: Axes | None = None,
    ) -> Axes:
        """Draw with matplotlib, in the report's colours.

        With the swept key `x`: the mean of a flow's `value` at each value of that key, with its 95 % confidence
        interval, and a line for each value of the swept key `lines` (or `"flow"`). `x="time"`: the column `value` of
        the series over time, of each run that `only` keeps. `x="samples"`: the cumulative distribution of a delay such
        as `rtt_ms`, of the samples of all seeds together. By default `x` and `lines` are the keys that differ between
        the cells.
        Raises `ResultsError` if several cells would be at one point.
        """
        from . import _figure

        if x == "time":
            return _figure.over_time(self, value, lines, flow, only or {}, ax)
        if x == "samples":
            return _figure.samples(self, value, lines, flow, only or {}, ax)
        return _figure.across(self, value, x, lines, flow, only or {}, ax)

    def report(self, path: str | os.PathLike[str]) -> Path:
        """Write the report: one self-contained HTML page, as from `ropewalk run`."""
        path = Path(path)
        path.write_text(self._native.page(), encoding="utf-8")
        return path

    def save(self, dir: str | os.PathLike[str]) -> Path:
        """Write a results folder with the report; `ropewalk report` and `ropewalk.open` read it.

        Raises `ResultsError` if the folder holds something else.
        """
        self._native.save(Path(dir))
        return Path(dir)

    def __str__(self) -> str:
        return self._native.text(120)

    def __repr__(self) -> str:
        state = f"digest {self.digest}" if self.complete else "incomplete"
        return f"<ropewalk.Results of {self.manifest['scenario']!r}: {len(self)} runs, {state}>"

    def _repr_html_(self) -> str:
        return self._native.html_tables()


def open(dir: str | os.PathLike[str]) -> Results:
    """Read the finished results folder `dir`. Raises `ResultsError`."""
    return Results(_native.Results.open(Path(dir)))
