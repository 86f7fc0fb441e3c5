"""A study on an executor: `concurrent.futures`, Ray, Dask, submitit.

The missing runs go out in shards. A worker returns its shard's results folder: as a path if workers and this process
share a folder, otherwise as the bytes of its files. Each shard is checked and stored when it arrives, so that nothing
is lost; a run that is already stored is not stored again.
"""

from __future__ import annotations

import contextlib
import io
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Future, wait
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import _native
from .errors import ResultsError, RunError, RunInterrupted, ScenarioError
from .results import Results

if TYPE_CHECKING:
    from .scenario import Scenario

__all__ = ["Task", "run", "run_shard"]

DEFAULT_SHARDS = 32
"""Enough for the shards of a few machines to end together, few enough for an engine that takes seconds per shard."""
_POLL_S = 0.1
_NOT_RETRIED = (RunError, ScenarioError)
"""Errors that every worker would have again: runs are deterministic."""


@dataclass(frozen=True)
class Task:
    """The task of a worker."""

    scenario: Scenario
    keys: list[tuple[int, int]]
    """Cell and seed of each run."""
    shard: tuple[int, int]
    """The number of the shard, from 1, and the number of shards."""
    jobs: int
    """Threads."""
    folder: str | None
    """The folder of its results, if workers share one; None: they are returned."""
    command: list[str]


def run_shard(task: Task) -> str | bytes:
    """Make the runs of a task, in a worker."""
    if task.folder is not None:
        _make(task, Path(task.folder))
        return task.folder
    with tempfile.TemporaryDirectory(prefix="ropewalk-") as folder:
        _make(task, Path(folder))
        return _pack(Path(folder))


def _make(task: Task, folder: Path) -> None:
    resolved = task.scenario._resolved
    raised = _native.run_shard(resolved, task.shard, task.keys, task.jobs, folder, task.command)
    if raised is not None:
        raise raised


def _pack(folder: Path) -> bytes:
    """The files of a folder; Parquet is already compressed."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for path in sorted(folder.iterdir()):
            if path.is_file():
                archive.write(path, path.name)
    return buffer.getvalue()


def run(
    scenario: Scenario,
    executor: Any,
    *,
    shards: int | None,
    jobs: int | None,
    retries: int,
    out: Path | None,
    shared: Path | None,
    progress: Callable[[int, int], None],
) -> Results:
    """Run the study on `executor`. See `Scenario.run`."""
    if shards is not None and shards < 1:
        raise ValueError(f"shards is {shards}: at least 1")
    if retries < 0:
        raise ValueError(f"retries is {retries}: at least 0")
    with contextlib.ExitStack() as stack:
        if out is None:
            out = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="ropewalk-")))
        command = list(sys.argv)
        gather = _native.Gather(scenario._resolved, out, command)
        progress(*gather.progress())
        divided = gather.divide(shards or DEFAULT_SHARDS)
        count = len(divided)
        tasks = [
            Task(scenario, keys, (index, count), jobs or 1, _shared_folder(shared, scenario, index, keys), command)
            for index, keys in enumerate(divided, 1)
        ]
        coordinator = _Coordinator(executor, gather, retries, progress)
        try:
            coordinator.run(tasks)
        except KeyboardInterrupt:
            coordinator.cancel()
            raise RunInterrupted(Results(gather.finish())) from None
        except BaseException:
            coordinator.cancel()
            gather.finish()
            raise
        return Results(gather.finish())


def _shared_folder(shared: Path | None, scenario: Scenario, index: int, keys: list[tuple[int, int]]) -> str | None:
    """A folder that depends only on the scenario and the runs, so that an interrupted shard continues there."""
    if shared is None:
        return None
    first, last = keys[0], keys[-1]
    name = f"{scenario.name}-{scenario.hash}-{index}-{len(keys)}-{first[0]}.{first[1]}-{last[0]}.{last[1]}"
    return str(shared.absolute() / name)


class _Coordinator:
    """Submits tasks, waits for their results, and submits again those that failed."""

    def __init__(
        self, executor: Any, gather: _native.Gather, retries: int, progress: Callable[[int, int], None]
    ) -> None:
        self._executor, self._gather, self._retries, self._progress = executor, gather, retries, progress
        self._attempts: dict[int, int] = {}
        self._pending: dict[Any, Task] = {}

    def run(self, tasks: list[Task]) -> None:
        # submitit makes one job array of the tasks that are submitted in a batch.
        batch = getattr(self._executor, "batch", contextlib.nullcontext)
        with batch():
            for task in tasks:
                self._submit(task)
        while self._pending:
            for future in self._done():
                self._take(future, self._pending.pop(future))

    def cancel(self) -> None:
        """Cancel tasks that have not begun; results that have arrived are kept."""
        for future in self._pending:
            with contextlib.suppress(Exception):
                future.cancel()
        for future, task in list(self._pending.items()):
            with contextlib.suppress(Exception):
                if future.done() and not (isinstance(future, Future) and future.cancelled()):
                    self._add(future.result(), task)

    def _submit(self, task: Task) -> None:
        index = task.shard[0]
        self._attempts[index] = self._attempts.get(index, 0) + 1
        self._pending[self._executor.submit(run_shard, task)] = task

    def _done(self) -> list[Any]:
        """Futures that are done; waits for the first."""
        while True:
            if all(isinstance(future, Future) for future in self._pending):
                done = list(wait(self._pending, timeout=1, return_when=FIRST_COMPLETED).done)
            else:  # submitit's jobs
                done = [future for future in self._pending if future.done()]
            if done:
                return done
            time.sleep(_POLL_S)

    def _take(self, future: Any, task: Task) -> None:
        try:
            result = future.result()
            self._add(result, task)
        except BrokenExecutor:
            raise  # it accepts no more tasks
        except Exception as error:
            index, count = task.shard
            if isinstance(error, _NOT_RETRIED):
                raise
            if self._attempts[index] > self._retries:
                message = f"shard {index} of {count} failed {self._attempts[index]} times, finally with: {error}"
                raise ResultsError(message) from error
            self._submit(task)

    def _add(self, result: str | bytes, task: Task) -> None:
        if isinstance(result, str):
            self._gather.add(Path(result))
        else:
            with tempfile.TemporaryDirectory(prefix="ropewalk-") as folder:
                zipfile.ZipFile(io.BytesIO(result)).extractall(folder)
                self._gather.add(Path(folder))
        self._progress(*self._gather.progress())
