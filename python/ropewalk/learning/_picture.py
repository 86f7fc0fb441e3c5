"""Render mode `rgb_array`: rate, RTT and congestion window of an episode over its time, as a small picture."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .._native import MEASURES, path_colour

__all__ = ["Picture"]

_WIDTH, _PANEL, _TOP, _SCALE = 320, 80, 16, 2
_PANELS = (
    ("RATE MBIT/S", "throughput_mbps", "capacity_mbps"),
    ("RTT MS", "rtt_ms", "min_rtt_ms"),
    ("WINDOW PACKETS", "cwnd_packets", None),
)
_GREY, _BLACK = (170, 170, 170), (40, 40, 40)
# Letters of 3 x 5 pixels: five digits each, of which one is a row, and its bits are the pixels.
_LETTERS = "0123456789ABCDEIKMNOPRSTW./ "
_ROWS = (
    "7555726227717477171755711747177475771244757577571725755656563444365556746477222755655577556555525552"
    "6564465655342167222255775000021124400000"
)


class Picture:
    """The measures of an episode's steps, one line per learner."""

    def __init__(self) -> None:
        self._steps: list[NDArray[np.float64]] = []

    def add(self, measures: NDArray[np.float64]) -> None:
        """Adds the measures after a step, one row per learner; those of an earlier time begin another episode."""
        measures = np.atleast_2d(measures).copy()
        if self._steps and measures[0, 0] < self._steps[-1][0, 0]:
            self._steps.clear()
        self._steps.append(measures)

    def draw(self) -> NDArray[np.uint8]:
        """The picture: 240 x 320 pixels of red, green and blue."""
        image = np.full((_PANEL * len(_PANELS), _WIDTH, 3), 255, dtype=np.uint8)
        for index, (title, name, reference) in enumerate(_PANELS):
            panel = image[_PANEL * index :][:_PANEL]
            panel[-1] = _GREY
            lines = self._lines(name)
            references = [] if reference is None else [(values, _GREY) for values, _ in self._lines(reference)[:1]]
            shown = [values[np.isfinite(values)] for values, _ in [*references, *lines]]
            top = max((float(values.max()) for values in shown if values.size), default=0.0)
            _write(panel, 4, title)
            number = f"{top:.1f}" if top < 100 else f"{top:.0f}"
            _write(panel, _WIDTH - 4 - 4 * _SCALE * len(number), number)
            for values, colour in [*references, *lines]:
                _plot(panel, values / top if top > 0 else values, colour)
        return image

    def _lines(self, name: str) -> list[tuple[NDArray[np.float64], tuple[int, ...]]]:
        if not self._steps:
            return []
        steps, column = np.stack(self._steps), MEASURES.index(name)
        end = max(float(steps[-1, 0, 0]), 1e-9)
        at = np.linspace(0, end, _WIDTH)
        return [
            (np.interp(at, steps[:, 0, 0], steps[:, learner, column], left=np.nan), _rgb(path_colour(learner)[0]))
            for learner in range(steps.shape[1])
        ]


def _rgb(colour: str) -> tuple[int, ...]:
    return tuple(bytes.fromhex(colour.removeprefix("#")))


def _write(panel: NDArray[np.uint8], x: int, text: str) -> None:
    for letter in text:
        rows = [[int(row) >> bit & 1 for bit in (2, 1, 0)] for row in _ROWS[5 * _LETTERS.index(letter) :][:5]]
        ink = np.kron(np.array(rows, dtype=bool), np.ones((_SCALE, _SCALE), dtype=bool))
        panel[3 : 3 + ink.shape[0], x : x + ink.shape[1]][ink] = _BLACK
        x += 4 * _SCALE


def _plot(panel: NDArray[np.uint8], shares: NDArray[np.float64], colour: tuple[int, ...]) -> None:
    """A line: for each column of pixels a share of the panel's height; NaN leaves it out."""
    bottom = _PANEL - 3
    previous = None
    for x, share in enumerate(shares):
        if np.isnan(share):
            previous = None
            continue
        y = round(bottom - share * (bottom - _TOP))
        low, high = sorted((y, y if previous is None else previous))
        panel[low : high + 2, x] = colour
        previous = y
