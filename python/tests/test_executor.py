"""Studies on executors: nothing lost, nothing twice, the digest of one machine."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Callable
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import ropewalk
from ropewalk import Results, ResultsError, RunInterrupted, Scenario


class Inline(Executor):
    """Runs each call at once, and tells `before` its number first."""

    def __init__(self, before: Callable[[int], None] = lambda _: None) -> None:
        self.calls, self._before = 0, before

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        self.calls += 1
        try:
            self._before(self.calls)
            future.set_result(fn(*args, **kwargs))
        except Exception as error:
            future.set_exception(error)
        return future


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def same(one: Results, other: Results) -> None:
    assert one.complete
    assert one.digest == other.digest
    assert one.runs.to_dict() == other.runs.to_dict()
    assert one.series.to_dict() == other.series.to_dict()


def test_processes_make_the_results_of_one_machine(scenario: Scenario, results: Results, tmp_path: Path) -> None:
    with ProcessPoolExecutor(2) as executor:
        same(scenario.run(executor=executor, progress=False), results)
        shared = scenario.run(executor=executor, shared=tmp_path, shards=3, progress=False)
        same(shared, results)
        assert len(list(tmp_path.iterdir())) == 3
        one = scenario.run(executor=executor, seeds=[2], jobs=2, progress=False)
        assert one.digest == scenario.run(seeds=[2], progress=False).digest


def test_the_folder_is_byte_for_byte_that_of_one_machine(scenario: Scenario, tmp_path: Path) -> None:
    scenario.run(out=tmp_path / "one", progress=False)
    scenario.run(executor=Inline(), out=tmp_path / "many", progress=False)
    assert files(tmp_path / "many") == files(tmp_path / "one")


def test_runs_that_the_folder_holds_are_not_made_again(scenario: Scenario, results: Results, tmp_path: Path) -> None:
    def stop(call: int) -> None:
        if call == 3:
            raise KeyboardInterrupt

    with pytest.raises(RunInterrupted):
        scenario.run(executor=Inline(stop), out=tmp_path, shards=6, progress=False)
    # The other way round too: the folder goes on without an executor.
    executor = Inline()
    same(scenario.run(executor=executor, out=tmp_path, shards=12, progress=False), results)
    assert executor.calls == 8, "12 runs, of which 2 shards with 2 runs each were done"
    executor = Inline()
    same(scenario.run(executor=executor, out=tmp_path, progress=False), results)
    assert executor.calls == 0


def test_an_interrupt_keeps_the_shards_that_are_done(scenario: Scenario, results: Results) -> None:
    def interrupt(call: int) -> None:
        if call == 4:
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(RunInterrupted) as raised:
        scenario.run(executor=Inline(interrupt), shards=6, progress=False)
    kept = raised.value.results
    assert len(kept) == 6
    assert not kept.complete
    assert kept.digest is None
    whole = dict(zip(zip(*by_key(results), strict=True), results.runs.to_dict()["digest"], strict=True))
    assert kept.runs.to_dict()["digest"] == [whole[key] for key in zip(*by_key(kept), strict=True)]


def by_key(results: Results) -> list[list[Any]]:
    return [results.runs.to_dict()[name] for name in ("cell", "seed")]


def test_a_failed_shard_is_submitted_again_but_not_for_ever(
    scenario: Scenario, results: Results, tmp_path: Path
) -> None:
    def fail(call: int) -> None:
        if call <= 2:
            raise OSError("the worker is gone")

    executor = Inline(fail)
    same(scenario.run(executor=executor, shards=3, progress=False), results)
    assert executor.calls == 5

    def fail_one(call: int) -> None:
        if call not in (1, 3):
            raise OSError("the worker is gone")

    executor = Inline(fail_one)
    with pytest.raises(ResultsError, match="shard 2 of 3 failed 2 times, finally with: the worker is gone"):
        scenario.run(executor=executor, shards=3, retries=1, out=tmp_path, progress=False)
    assert executor.calls == 4
    executor = Inline()
    same(scenario.run(executor=executor, shards=3, out=tmp_path, progress=False), results)
    assert executor.calls == 3, "the four runs that were lost, in three shards"


def test_a_wrong_scenario_is_not_submitted(scenario: Scenario) -> None:
    executor = Inline()
    wrong = Scenario.parse(scenario.to_toml().replace('"bbr"', '"bbrr"'))
    with pytest.raises(ropewalk.ScenarioError, match="did you mean"):
        wrong.run(executor=executor, progress=False)
    assert executor.calls == 0
    for options in ({"shards": 0}, {"retries": -1}, {"jobs": 0}):
        with pytest.raises(ValueError, match="at least"):
            scenario.run(executor=executor, progress=False, **options)  # type: ignore[arg-type]


def test_a_damaged_result_counts_as_a_failed_shard(scenario: Scenario, results: Results, tmp_path: Path) -> None:
    class Damages(Inline):
        def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
            future = super().submit(fn, *args, **kwargs)
            if self.calls == 1:
                table = Path(future.result()) / "flows.parquet"
                table.write_bytes(table.read_bytes()[:-9] + bytes(9))
            return future

    with pytest.raises(ResultsError, match=r"flows\.parquet is damaged"):
        scenario.run(executor=Damages(), shards=2, retries=0, shared=tmp_path / "a", progress=False)
    with pytest.raises(ResultsError, match="failed 3 times"):
        # In a shared folder the file stays as it is, and says so each time.
        scenario.run(executor=Damages(), shards=2, shared=tmp_path / "b", progress=False)


def test_shards_of_the_program_and_of_executors_are_the_same(
    command: Path, scenario: Scenario, results: Results, tmp_path: Path
) -> None:
    file = tmp_path / "two.toml"
    file.write_text(scenario.to_toml())
    for shard in (1, 2):
        line: list[str | Path] = [
            command,
            "run",
            file,
            "--quiet",
            "--shard",
            f"{shard}/2",
            "--out",
            tmp_path / f"shard-{shard}",
        ]
        subprocess.run(line, check=True, capture_output=True)
    merge: list[str | Path] = [
        command,
        "merge",
        tmp_path / "shard-1",
        tmp_path / "shard-2",
        "--out",
        tmp_path / "merged",
    ]
    subprocess.run(merge, check=True, capture_output=True)
    same(ropewalk.open(tmp_path / "merged"), results)
