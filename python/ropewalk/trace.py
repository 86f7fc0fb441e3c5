"""One run of a scenario again, with all of its packets in view."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from . import _native
from .tables import Table

__all__ = ["Trace", "read_capture", "trace"]

_Path = str | os.PathLike[str]


class Trace:
    """A run that was repeated with its packets in view.

    cell: the swept keys and their displayed values; seed: the run's; digest: the same as without a trace.
    """

    def __init__(self, scenario: _native.Scenario, cell: dict[str, str], seed: int, digest: str) -> None:
        """Traces come from `Scenario.trace`."""
        self._scenario, self.cell, self.seed, self.digest = scenario, cell, seed, digest

    @cached_property
    def events(self) -> Table:
        """A row for each packet sent, delivered or lost, each change of a sender's state and of what limits it.

        docs/reference/trace.md describes the columns. The run is repeated for the table, which is in memory.
        """
        return Table(_native.trace_events(self._scenario, _pairs(self.cell), self.seed))

    def __repr__(self) -> str:
        return f"<ropewalk.Trace of {self._scenario.name!r}: {self.cell}, seed {self.seed}, digest {self.digest}>"


def read_capture(path: _Path, *, at: Literal["near", "far"] | None = None) -> Table:
    """The events of a capture (pcap, pcapng) of a kernel's run, with the columns of `Trace.events`.

    at: "near" if it was made at the host that opens connections, "far" if at the one that accepts them; the default is
    what the first handshake tells. docs/reference/trace.md says which columns a capture fills.
    """
    return Table(_native.capture_events(Path(path), at))


def trace(
    scenario: _native.Scenario,
    cell: Mapping[str, Any] | None,
    seed: int | None,
    *,
    pcap: _Path | None,
    at: str,
    payload: bool,
    events: _Path | None,
    qlog: _Path | None,
    qlog_version: Literal["quic-12", "0.3"],
    page: _Path | None,
) -> Trace:
    """See `Scenario.trace`."""
    if qlog_version not in ("quic-12", "0.3"):
        raise ValueError(f"qlog_version is {qlog_version!r}: 'quic-12' or '0.3'")
    seed = scenario.seeds[0] if seed is None else int(seed)
    files = {"pcap": pcap, "events": events, "qlog": qlog, "page": page}
    options: dict[str, Path | str | bool | None] = {
        name: None if path is None else Path(path) for name, path in files.items()
    }
    options |= {"at": at, "has_payload": payload, "is_qlog_03": qlog_version == "0.3"}
    made, digest = _native.trace_run(scenario, _pairs(cell or {}), seed, options)
    return Trace(scenario, dict(made), seed, digest)


def _pairs(cell: Mapping[str, Any]) -> list[str]:
    return [f"{key}={value}" for key, value in cell.items()]
