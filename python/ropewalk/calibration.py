"""Links fitted to measurements: `ropewalk.fit`. docs/how-to/fit-and-advise.md shows what the numbers mean."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from . import _native
from .scenario import Scenario

__all__ = ["Fit", "fit"]

_STREAM = '\n[[flow]]\nname = "stream"\nkind = "mptcp"\nstart_within = "300ms"\n'


class Fit:
    """An ensemble of links, next to the noise floor, the naive links and what was held out."""

    def __init__(self, document: str) -> None:
        """Use `ropewalk.fit`."""
        self._text = document
        self.document: dict[str, Any] = json.loads(document)

    @property
    def ensemble(self) -> list[Scenario]:
        """The links of each member as a scenario, with an MPTCP flow `stream` over all paths."""
        return [_scenario(member["links"]) for member in self.document["members"]]

    @property
    def parameters(self) -> dict[str, dict[str, Any]]:
        """Of each unknown by its key: `median`, `low` and `high` of 90 %, and `is_known`."""
        return {
            parameter["unknown"]["key"]: {**parameter["interval"], "is_known": parameter["is_known"]}
            for parameter in self.document["parameters"]
        }

    @property
    def held_out(self) -> float | None:
        """How far the ensemble is from what was held out: 0.1 for about 10 %; `None` if nothing was."""
        held_out: float | None = self.document["distance"]["held_out"]
        return held_out

    @property
    def distance(self) -> float:
        """How far the ensemble is from what was fitted, as the root mean square of logarithms."""
        return float(self.document["distance"]["fitted"])

    @property
    def noise(self) -> float:
        """The noise floor: how far two measurements of the same links are apart."""
        return float(self.document["noise"]["fitted"])

    @property
    def baseline(self) -> float:
        """How far the naive links are from what was fitted."""
        return float(self.document["naive"]["fitted"])

    @property
    def digest(self) -> str:
        """Of all values; the same measurement, options and evaluations give it again."""
        return str(self.document["digest"])

    def report(self) -> str:
        """The tables that `ropewalk fit` prints."""
        return _native.fit_text(self._text)

    def save(self, folder: str | os.PathLike[str]) -> Path:
        """Write the folder that `ropewalk fit --out` writes, and return the path of its page."""
        return _native.write_fit(self._text, Path(folder))

    def __repr__(self) -> str:
        return f"<Fit of {len(self.document['members'])} members, digest {self.digest}>"


def fit(
    *,
    to: str | os.PathLike[str] | Iterable[str | os.PathLike[str]] | Mapping[str, str | os.PathLike[str]],
    scenario: str | os.PathLike[str] | None = None,
    free: Mapping[str, str] | None = None,
    hold: Iterable[str] = ("call",),
    members: int = 8,
    seconds: float = 120,
    evaluations: int | None = None,
    seed: int = 1,
    jobs: int | None = None,
) -> Fit:
    """Fit links to the measurements in the files `to`, as `ropewalk fit [SCENARIO] --to ...`.

    A file is a document of `ropewalk probe`, a capture, or of iperf3, ping, irtt, flent, `ss` or a tunnel. A
    mapping gives names to paths: `{"lte": "iperf3.json"}`; several files of one path are a list of `NAME=FILE`.

    The ensemble has so many `members`. So many `evaluations` give the same fit everywhere; without
    them the search takes `seconds`.

    Raises `ValueError` for a measurement or a range that does not do, and `ScenarioError` for a scenario.
    """
    if isinstance(to, Mapping):
        to = [f"{name}={os.fspath(file)}" for name, file in to.items()]
    files = [to] if isinstance(to, (str, os.PathLike)) else list(to)
    choices = {
        "scenario": None if scenario is None else Path(scenario),
        "free": list((free or {}).items()),
        "hold": list(hold),
        "members": members,
        "evaluations": evaluations,
        "seconds": seconds,
        "seed": seed,
        "jobs": jobs,
    }
    return Fit(_native.fit([Path(file) for file in files], choices))


def _scenario(links: dict[str, Any]) -> Scenario:
    sets = dict(assignment.split("=", 1) for assignment in links["sets"])
    return Scenario.parse(links["text"] + _STREAM, base=links["folder"], origin=links["origin"], set=sets)
