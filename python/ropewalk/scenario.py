"""Scenarios: loaded from a file, parsed from a string, changed by the keys of `--set`."""

from __future__ import annotations

import difflib
import operator
import os
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal

from . import _executor, _native, _toml, algorithm
from ._progress import Progress
from .errors import RunInterrupted, ScenarioError
from .results import Results
from .trace import Trace
from .trace import trace as _trace

__all__ = ["Scenario", "scenarios"]


class Scenario:
    """An experiment as data: paths, queues, flows, events, sweep, seeds. docs/reference/scenario has every key."""

    _resolved: _native.Scenario

    def __init__(self, origin: str, text: str, base: str, sets: Mapping[str, Any] | None, quick: bool) -> None:
        """Use `Scenario.load` or `Scenario.parse`."""
        self._origin, self._text, self._base, self._quick = origin, text, base, quick
        self._sets = [f"{key}={_toml.override(value)}" for key, value in (sets or {}).items()]
        self._resolved = self._read(self._sets)

    @classmethod
    def load(
        cls, path: str | os.PathLike[str], *, set: Mapping[str, Any] | None = None, quick: bool = False
    ) -> Scenario:
        """Read a scenario, with `set` and `quick` as `ropewalk run --set ... --quick`.

        `path` is a file, or a name of `ropewalk.scenarios()`.

        Raises `ScenarioError` with file, line, key and help.
        """
        path = Path(path)
        text = None if path.exists() else _built_in(path)
        return cls(str(path), text or _native.read_scenario(path), str(path.parent), set, quick)

    @classmethod
    def parse(
        cls,
        text: str,
        *,
        base: str | os.PathLike[str] = "",
        origin: str = "<text>",
        set: Mapping[str, Any] | None = None,
        quick: bool = False,
    ) -> Scenario:
        """Read a scenario from `text`, which errors call `origin`; files that it names are looked for in `base`.

        Raises `ScenarioError` with line, key and help.
        """
        return cls(origin, text, os.fspath(base), set, quick)

    def set(self, key: str, value: Any) -> None:
        """Set a dotted key, as `--set KEY=VALUE` does; a string is read as there, anything else as a TOML value.

        The last value of a key counts: a cell of a notebook that is run again changes nothing. Raises `ScenarioError`,
        and leaves the scenario as it was.
        """
        sets = [*self._sets, f"{key}={_toml.override(value)}"]
        self._resolved, self._sets = self._read(sets), sets

    def run(
        self,
        *,
        seeds: Iterable[int] | None = None,
        jobs: int | None = None,
        out: str | os.PathLike[str] | None = None,
        progress: bool = True,
        executor: Any = None,
        shards: int | None = None,
        shared: str | os.PathLike[str] | None = None,
        retries: int = 2,
    ) -> Results:
        """Run every cell with every seed on `jobs` threads, by default one per processor.

        `seeds` replace the scenario's, as `set("seeds", ...)` would. With the folder `out`, each run is stored there as
        soon as it is done, and runs that it already holds are not repeated; it is the folder of `ropewalk run --out`.
        Other seeds than it holds are added to it.
        Other Python threads keep running. Ctrl-C raises `RunInterrupted` (a `KeyboardInterrupt`), whose `results`
        are the finished runs. Raises `ScenarioError`, `RunError`, `ResultsError`.

        With an `executor` (`concurrent.futures.Executor`, `ropewalk.ray.RayExecutor`, Dask's `client.get_executor()`, a
        submitit executor) its workers make the runs, in `shards` parts (by default 32) of similar estimated cost, each
        on `jobs` threads (by default one). Results are returned as bytes, or by path if `shared` is a folder that this
        process and all workers see. A shard that fails is submitted again, `retries` times, unless a run of it failed,
        because it would fail again. See docs/how-to/run-on-a-cluster.md.
        """
        if jobs is not None and jobs < 1:
            raise ValueError(f"jobs is {jobs}: at least 1")
        scenario = self._with_seeds(seeds)
        if out is not None:
            scenario = scenario._with_seeds(_native.with_stored_seeds(scenario._resolved, Path(out)))
        if executor is not None:
            with Progress(progress) as callback:
                return _executor.run(
                    scenario,
                    executor,
                    shards=shards,
                    jobs=jobs,
                    retries=retries,
                    out=None if out is None else Path(out),
                    shared=None if shared is None else Path(shared),
                    progress=callback,
                )
        with Progress(progress) as callback:
            native, raised = _native.run(
                scenario._resolved, jobs, None if out is None else Path(out), callback, list(sys.argv)
            )
        results = Results(native)
        if isinstance(raised, KeyboardInterrupt):
            raise RunInterrupted(results) from None
        if raised is not None:
            raise raised
        return results

    def trace(
        self,
        *,
        cell: Mapping[str, Any] | None = None,
        seed: int | None = None,
        pcap: str | os.PathLike[str] | None = None,
        at: str = "near",
        payload: bool = False,
        events: str | os.PathLike[str] | None = None,
        qlog: str | os.PathLike[str] | None = None,
        qlog_version: Literal["quic-12", "0.3"] = "quic-12",
        page: str | os.PathLike[str] | None = None,
    ) -> Trace:
        """Repeat one run with its packets in view, as `ropewalk trace` does.

        cell: values of swept keys as `cells` shows them; a key may be shortened to its last parts. Needed where the
            scenario has several cells.
        seed: by default the scenario's first.
        pcap, events, qlog, page: files to write.
        at: the place of the packets in `pcap`: "near", "far", a link's name for packets that enter it, or "NAME:out"
            for packets that leave it. payload: whether they have their payload.
        qlog_version: "0.3" is the version that qvis reads.

        Returns a `Trace`, whose `events` are a table. Raises `ValueError` if no cell or several match, and `OSError`
        for a file that cannot be written.
        """
        return _trace(
            self._resolved,
            cell,
            seed,
            pcap=pcap,
            at=at,
            payload=payload,
            events=events,
            qlog=qlog,
            qlog_version=qlog_version,
            page=page,
        )

    def _with_seeds(self, seeds: Iterable[int] | None) -> Scenario:
        if seeds is None:
            return self
        sets = [*self._sets, f"seeds={_toml.value([operator.index(seed) for seed in seeds])}"]
        return _restore(self._origin, self._text, self._base, sets, self._quick, [])

    def _read(self, sets: list[str]) -> _native.Scenario:
        return _native.Scenario.parse(self._origin, self._text, self._base, sets, self._quick)

    @property
    def name(self) -> str:
        """Short name."""
        return self._resolved.name

    @property
    def title(self) -> str:
        """One line: the purpose of the scenario."""
        return self._resolved.title

    @property
    def seeds(self) -> list[int]:
        """The seeds; each cell runs once with each of them."""
        return self._resolved.seeds

    @property
    def cells(self) -> list[dict[str, str]]:
        """The cells of the sweep: each swept key and its displayed value."""
        return [dict(parameters) for parameters in self._resolved.cells]

    @property
    def hash(self) -> str:
        """16 hexadecimal digits of the study: they change if the text, a set key, or a file that it names changes.

        Sets of seeds, and the order of sets where it does not matter, change nothing.
        """
        return self._resolved.hash

    def to_toml(self) -> str:
        """The scenario file; after `set` or with `quick`, the file with the values in their places.

        Raises `ValueError` if the text of the file cannot hold a value that was set.
        """
        text = self._resolved.effective_text
        if text is not None:
            return text
        if self._sets or self._resolved.is_short:
            raise ValueError("the text of this scenario cannot hold the keys that were set: write them into it")
        return self._text

    def _parts(self) -> dict[str, Any]:
        """What the scenario is read from."""
        names = ("origin", "text", "base", "sets", "quick")
        return {name: getattr(self, f"_{name}") for name in names}

    def _only(self, cell: Mapping[str, str], seed: int) -> Scenario:
        """The scenario of one run."""
        sets = [*self._sets, *(f"{key}={label}" for key, label in cell.items()), f"seeds=[{seed}]"]
        return _restore(self._origin, self._text, self._base, sets, self._quick, [])

    def __repr__(self) -> str:
        numbers = [(len(self.cells), "cell"), (len(self.seeds), "seed")]
        counts = [f"{number} {noun}{'' if number == 1 else 's'}" for number, noun in numbers]
        return f"<ropewalk.Scenario {self.name!r}: {' with '.join(counts)}>"

    def __reduce__(self) -> tuple[Any, ...]:
        # Classes are sent along: a worker process that imports their module, or gets them by value, registers them.
        classes = algorithm.named_in([self._text, *self._sets])
        return _restore, (self._origin, self._text, self._base, self._sets, self._quick, classes)


def scenarios() -> list[str]:
    """The names of the scenarios that the package carries; `Scenario.load` takes them."""
    return sorted(name for name, _, _ in _native.built_in())


def _built_in(path: Path) -> str | None:
    """The text of the scenario that the package carries under a name, or as a file of its repository.

    Raises `ScenarioError` with the nearest name for a name that there is not. None for the path of a file.
    """
    wanted = path.as_posix().removesuffix(".toml").removeprefix("scenarios/")
    for name, file, text in _native.built_in():
        if wanted in (name, file.removesuffix(".toml")):
            return text
    if path.suffix and path.parts[:-1] and path.parts[0] != "scenarios":
        return None
    nearest = difflib.get_close_matches(wanted.rsplit("/")[-1].replace("_", "-"), scenarios(), 1)
    message = f"there is no file {str(path)!r}, and no scenario of this name"
    help = f"did you mean {nearest[0]!r}?" if nearest else "ropewalk.scenarios() lists the names"
    raise ScenarioError(f"error: {message}\n  help: {help}", str(path), 0, "", message, help)


def _restore(origin: str, text: str, base: str, sets: list[str], quick: bool, classes: list[Any]) -> Scenario:
    """Unpickle a scenario."""
    algorithm.register_again(classes)
    scenario = Scenario.__new__(Scenario)
    scenario._origin, scenario._text, scenario._base, scenario._quick = origin, text, base, quick
    scenario._sets = sets
    scenario._resolved = scenario._read(sets)
    return scenario
