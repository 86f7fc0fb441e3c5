"""Figures of results with matplotlib."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import matplotlib.colors
import matplotlib.pyplot

from . import _native
from .errors import ResultsError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from .results import Estimate, Results

__all__ = ["across", "over_time", "samples"]

Only = Mapping[str, str | Sequence[str]]
FLOW = "flow"
Dash = str | tuple[float, Sequence[float]]
# The largest multiple of a unit that leaves the greatest value of an axis at 1 or more.
SCALES = {
    "s": ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns")),
    "bit/s": ((1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s"), (1.0, "bit/s")),
    "B": ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "B")),
}


def across(
    results: Results, value: str, x: str | None, lines: str | None, flow: str | None, only: Only, ax: Axes | None
) -> Axes:
    """The mean of a value at each value of a swept key."""
    estimates = results.estimates(value, flow=flow, only=only, by_flow=FLOW in (x, lines))
    if not estimates:
        raise ResultsError(f"no run has a value `{value}` here")
    varying = [key for key, values in _values(estimates).items() if len(values) > 1]
    x = x or next((key for key in varying if key != lines and _numbers(_values(estimates)[key])), None)
    x = x or next((key for key in varying if key != lines), None)
    if x is None:
        raise ResultsError('nothing is swept here: x="time" draws series, `estimates` has the value')
    lines = lines or next((key for key in varying if key != x), None)
    _require(estimates, [x, *([lines] if lines else [])], varying)
    ax = ax if ax is not None else matplotlib.pyplot.subplots(layout="constrained")[1]
    positions, label = _axis(x, _values(estimates)[x])
    names = _values(estimates)[lines] if lines else [""]
    several = any(estimate.half_width is not None for estimate in estimates)
    for name, (colour, dash, marker) in zip(names, _looks(names, ax), strict=True):
        points = [estimate for estimate in estimates if not lines or estimate.parameters[lines] == name]
        points.sort(key=lambda estimate: positions[estimate.parameters[x]])
        ax.errorbar(
            [positions[estimate.parameters[x]] for estimate in points],
            [estimate.mean for estimate in points],
            yerr=[estimate.half_width or 0.0 for estimate in points] if several else None,
            label=name or None,
            color=colour,
            linestyle=dash,
            marker=marker,
            markersize=4,
            capsize=2,
        )
    if _numbers(_values(estimates)[x]) is None:
        ax.set_xticks(list(positions.values()), list(positions))
    ax.set(xlabel=label, ylabel=_native.value_label(value))
    return _finish(ax, lines)


def over_time(results: Results, value: str, lines: str | None, flow: str | None, only: Only, ax: Axes | None) -> Axes:
    """A column of the series over time, of each run."""
    columns = results.series.to_dict()
    if value not in columns:
        known = ", ".join(name for name in columns if name.endswith(("_mbps", "_ms", "_packets")))
        raise ResultsError(f"the series have no column `{value}`; {f'known: {known}' if known else 'set `sample`'}")
    kept = {key: {shown} if isinstance(shown, str) else set(shown) for key, shown in only.items()}
    swept = list(columns)[: list(columns).index("cell")]
    parameters = [key for key in swept if len(set(columns[key])) > 1]
    subject = f"{'subflow' if flow and '/' in flow else 'flow'} {flow}" if flow else None
    runs: dict[tuple[object, ...], tuple[list[float], list[float]]] = {}
    for row, (of_row, sample) in enumerate(zip(columns["subject"], columns[value], strict=True)):
        in_scope = all(str(columns[key][row]) in shown for key, shown in kept.items())
        if not in_scope or sample is None or (of_row != subject if subject else not of_row.startswith("flow ")):
            continue
        names = {FLOW: of_row.removeprefix("flow "), **{key: columns[key][row] for key in parameters}}
        shown_keys = [lines] if lines else [*parameters, FLOW]
        name = ", ".join(str(names[key]) for key in shown_keys if key in names)
        times, samples = runs.setdefault((name, columns["cell"][row], columns["seed"][row], of_row), ([], []))
        times.append(columns["time_s"][row])
        samples.append(sample)
    if not runs:
        raise ResultsError(f"no series of `{value}` here")
    ax = ax if ax is not None else matplotlib.pyplot.subplots(layout="constrained")[1]
    names_of_lines = list(dict.fromkeys(str(key[0]) for key in runs))
    looks = dict(zip(names_of_lines, _looks(names_of_lines, ax), strict=True))
    labelled: set[str] = set()
    for key, (times, samples) in runs.items():
        name = str(key[0])
        colour, dash, _ = looks[name]
        label = None if name in labelled else name
        ax.plot(times, samples, color=colour, linestyle=dash, label=label, linewidth=1.2)
        labelled.add(name)
    ax.set(xlabel="time, s", ylabel=_native.value_label(value))
    return _finish(ax, lines if len(names_of_lines) > 1 else None)


def samples(results: Results, value: str, lines: str | None, flow: str | None, only: Only, ax: Axes | None) -> Axes:
    """The cumulative distribution of a delay's samples, those of all seeds together."""
    columns = results.histograms.to_dict()
    known = sorted(set(columns["column"]))
    if value not in known:
        raise ResultsError(f"no samples of `{value}`; known: {', '.join(known) or 'none, as of a run on a kernel'}")
    kept = {key: {shown} if isinstance(shown, str) else set(shown) for key, shown in only.items()}
    flow = flow or results.flows.to_dict()["flow"][0]
    subject = f"{'subflow' if flow and '/' in flow else 'flow'} {flow}"
    parameters = list(columns)[: list(columns).index("cell")]
    counts: dict[str, dict[float, int]] = {}
    cells: dict[str, set[int]] = {}
    for row, (column, of_row) in enumerate(zip(columns["column"], columns["subject"], strict=True)):
        in_scope = all(str(columns[key][row]) in shown for key, shown in kept.items())
        if column != value or not in_scope or (of_row != subject if lines != FLOW else not of_row.startswith("flow ")):
            continue
        lines = lines or next((key for key in parameters if len(set(columns[key])) > 1), None)
        name = of_row.removeprefix("flow ") if lines == FLOW else str(columns[lines][row]) if lines else ""
        of_line = counts.setdefault(name, {})
        of_line[columns["max_ms"][row]] = of_line.get(columns["max_ms"][row], 0) + columns["count"][row]
        cells.setdefault(name, set()).add(columns["cell"][row])
    if any(len(of_line) > 1 for of_line in cells.values()):
        raise ResultsError("several cells in one line: choose values of the other swept keys with `only`")
    if not counts:
        raise ResultsError(f"no samples of `{value}` here")
    ax = ax if ax is not None else matplotlib.pyplot.subplots(layout="constrained")[1]
    for name, (colour, dash, _) in zip(counts, _looks(list(counts), ax), strict=True):
        delays = sorted(counts[name])
        below = list(itertools.accumulate(counts[name][delay] for delay in delays))
        shares = [count / below[-1] for count in below]
        ax.step(delays, shares, where="post", color=colour, linestyle=dash, label=name or None, linewidth=1.2)
    ax.set(xlabel=_native.value_label(value), ylabel="share of the samples", ylim=(0, 1))
    return _finish(ax, lines if len(counts) > 1 else None)


def _values(estimates: Iterable[Estimate]) -> dict[str, list[str]]:
    """The values of each swept key, in the order of the sweep."""
    values: dict[str, list[str]] = {}
    for estimate in estimates:
        for key, shown in estimate.parameters.items():
            known = values.setdefault(key, [])
            if shown not in known:
                known.append(shown)
    return values


def _require(estimates: Sequence[Estimate], keys: Sequence[str], varying: Sequence[str]) -> None:
    """Raise unless each point is one cell."""
    for key in keys:
        if any(key not in estimate.parameters for estimate in estimates):
            known = ", ".join([*_values(estimates), FLOW])
            raise ResultsError(f"`{key}` is not swept here; known: {known}")
    points = [tuple(estimate.parameters[key] for key in keys) for estimate in estimates]
    if len(set(points)) < len(points):
        others = ", ".join(f"`{key}`" for key in varying if key not in keys)
        raise ResultsError(f"several cells at one point: choose values of {others} with `only`")


def _numbers(values: Sequence[str]) -> tuple[list[float], str] | None:
    """The values as numbers of one unit, if they are."""
    try:
        quantities = [_native.quantity(shown) for shown in values]
    except ValueError:
        return None
    units = {unit for number, unit in quantities if number}
    return ([number for number, _ in quantities], units.pop() if units else "") if len(units) <= 1 else None


def _axis(key: str, values: Sequence[str]) -> tuple[dict[str, float], str]:
    """The position of each value on the axis of `key`, and the axis' label."""
    numbers = _numbers(values)
    if numbers is None:
        return {shown: float(index) for index, shown in enumerate(values)}, key
    greatest = max(abs(number) for number in numbers[0])
    scales = SCALES.get(numbers[1], ((1.0, numbers[1]),))
    scale, unit = next((scale for scale in scales if greatest >= scale[0]), scales[-1])
    positions = {shown: number / scale for shown, number in zip(values, numbers[0], strict=True)}
    return positions, f"{key}, {unit}" if unit else key


def _looks(names: Sequence[str], ax: Axes) -> list[tuple[str, Dash, str]]:
    """The report's colour, of the shade for the axes' background, dash pattern and marker of each name."""
    red, green, blue = matplotlib.colors.to_rgb(ax.get_facecolor()[:3])
    dark = 0.2126 * red + 0.7152 * green + 0.0722 * blue < 0.5
    looks = _native.looks(list(names))
    return [(shades[dark], (0.0, dashes) if dashes else "solid", marker) for shades, dashes, marker in looks]


def _finish(ax: Axes, lines: str | None) -> Axes:
    ax.grid(alpha=0.25, linewidth=0.5)
    ax.spines[["top", "right"]].set_visible(False)
    if lines:
        ax.legend(title=lines, frameon=False, fontsize="small", title_fontsize="small")
    return ax
