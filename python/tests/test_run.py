"""Runs: digests, threads, interrupts, folders."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import threading
from pathlib import Path

import pytest

import ropewalk
from conftest import ROOT, TEXT
from ropewalk import Results, RunInterrupted, Scenario


def by_command(command: Path, *arguments: str | Path) -> str:
    """The digest that the program gives."""
    line = [command, "run", *arguments, "--quiet", "--json"]
    document = json.loads(subprocess.run(line, check=True, capture_output=True, text=True).stdout)
    return str(document["digest"])


def test_digests_are_those_of_the_command(command: Path, tmp_path: Path, results: Results) -> None:
    path = tmp_path / "two.toml"
    path.write_text(TEXT)
    assert by_command(command, path, "--out", tmp_path / "out") == results.digest
    paper = ROOT / "scenarios/papers/al-imareen-2024.toml"
    sets = {"duration": "2s", "flow.tcp.congestion": "cubic"}
    here = Scenario.load(paper, quick=True, set=sets).run(progress=False)
    options = [word for key, value in sets.items() for word in ("--set", f"{key}={value}")]
    assert by_command(command, paper, "--quick", *options, "--out", tmp_path / "paper") == here.digest


def test_threads_and_folders_change_no_digit(scenario: Scenario, results: Results, tmp_path: Path) -> None:
    assert scenario.run(jobs=1, progress=False).digest == results.digest
    assert scenario.run(out=tmp_path, progress=False).digest == results.digest
    assert ropewalk.open(tmp_path).digest == results.digest
    assert ropewalk.open(tmp_path).flows.to_dict() == results.flows.to_dict()


def test_without_a_folder_nothing_is_written(
    scenario: Scenario, results: Results, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert scenario.run(progress=False).digest == results.digest
    assert list(tmp_path.iterdir()) == []


def test_seeds_replace_those_of_the_scenario(scenario: Scenario, results: Results) -> None:
    one = scenario.run(seeds=[2], progress=False)
    assert len(one) == 4
    digests = zip(results.runs.to_dict()["seed"], results.runs.to_dict()["digest"], strict=True)
    assert one.runs.to_dict()["digest"] == [digest for seed, digest in digests if seed == 2]
    assert scenario.seeds == [1, 2, 3], "the scenario is as it was"


def test_seeds_are_added_to_a_stored_study(tmp_path: Path) -> None:
    whole = Scenario.parse(TEXT).run(seeds=range(1, 6), progress=False)
    scenario = Scenario.parse(TEXT)
    assert len(scenario.run(out=tmp_path, seeds=[1, 2], progress=False)) == 8
    added = scenario.run(out=tmp_path, seeds=[4, 3, 5], progress=False)
    assert (len(added), added.digest) == (20, whole.digest)
    again = scenario.run(out=tmp_path, seeds=[1], progress=False)
    assert (len(again), again.digest) == (20, whole.digest), "none of its runs is lost"
    assert Scenario.parse(again.manifest["effective_text"]).run(progress=False).digest == whole.digest
    with pytest.raises(TypeError, match="float"):
        scenario.run(seeds=[1.7])  # type: ignore[list-item]


def test_another_study_is_refused_with_what_differs(tmp_path: Path) -> None:
    Scenario.parse(TEXT).run(out=tmp_path, seeds=[1], progress=False)
    other = Scenario.parse(TEXT, set={"path.link.loss": "1%"})
    difference = re.escape('first line that differs: `loss = "0.1%"` there, `loss = "1%"` now')
    with pytest.raises(ropewalk.ResultsError, match=difference):
        other.run(out=tmp_path, seeds=[1], progress=False)


def test_saved_results_are_a_folder_of_the_command(command: Path, results: Results, tmp_path: Path) -> None:
    results.save(tmp_path / "saved")
    shown = subprocess.run([command, "report", tmp_path / "saved"], check=True, capture_output=True, text=True).stdout
    assert f"digest  {results.digest}" in shown
    page = results.report(tmp_path / "page.html").read_text()
    assert page == (tmp_path / "saved/report.html").read_text()


def test_an_interrupt_keeps_finished_runs_and_the_folder_goes_on(
    scenario: Scenario, results: Results, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt_after_two(self: object, done: int, planned: int) -> None:
        assert planned == 12
        if done == 2:
            os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr("ropewalk._progress.Progress.__call__", interrupt_after_two)
    with pytest.raises(KeyboardInterrupt) as caught:
        scenario.run(jobs=1, out=tmp_path)
    assert isinstance(caught.value, RunInterrupted)
    partial = caught.value.results
    assert 2 <= len(partial) < 12
    assert (partial.complete, partial.digest) == (False, None)
    finished = set(partial.runs.to_dict()["digest"])
    assert finished < set(results.runs.to_dict()["digest"])
    stored: list[int] = []
    monkeypatch.setattr("ropewalk._progress.Progress.__call__", lambda self, done, planned: stored.append(done))
    assert scenario.run(jobs=1, out=tmp_path).digest == results.digest
    assert stored == list(range(len(partial), 13)), "finished runs are not repeated"


def test_an_interrupt_stops_a_run_that_would_take_days(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(self: object, done: int, planned: int) -> None:
        os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr("ropewalk._progress.Progress.__call__", interrupt)
    sets = {"duration": "10000000s", "sample": "100000s", "seeds": [1]}
    with pytest.raises(RunInterrupted) as caught:
        Scenario.parse(TEXT, set=sets).run()
    assert len(caught.value.results) == 0


def test_an_error_of_the_progress_bar_is_raised(scenario: Scenario, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(self: object, done: int, planned: int) -> None:
        raise ZeroDivisionError("in the bar")

    monkeypatch.setattr("ropewalk._progress.Progress.__call__", fail)
    with pytest.raises(ZeroDivisionError, match="in the bar"):
        scenario.run()


def test_other_threads_go_on_while_runs_go(scenario: Scenario, monkeypatch: pytest.MonkeyPatch) -> None:
    """The run waits, in its last callback, until the other thread has counted: with the lock held it never would."""
    counted, asked = threading.Semaphore(0), threading.Semaphore(0)
    finished = threading.Event()

    def count() -> None:
        while not finished.is_set():
            asked.acquire()
            counted.release()

    def wait_for_one(self: object, done: int, planned: int) -> None:
        asked.release()
        counted.acquire()

    monkeypatch.setattr("ropewalk._progress.Progress.__call__", wait_for_one)
    thread = threading.Thread(target=count)
    thread.start()
    try:
        assert len(scenario.run()) == 12
    finally:
        finished.set()
        asked.release()
        thread.join()


def test_what_cannot_run_says_so(tmp_path: Path) -> None:
    with pytest.raises(ropewalk.ScenarioError, match="did you mean `reno`") as caught:
        Scenario.parse(TEXT, set={"flow.tcp.congestion": "renno"}).run(progress=False)
    assert (caught.value.file, caught.value.key) == ("--set", "flow.tcp.congestion")
    (tmp_path / "other").write_text("not results")
    with pytest.raises(ropewalk.ResultsError, match="choose another folder"):
        Scenario.parse(TEXT).run(out=tmp_path, progress=False)
    with pytest.raises(ropewalk.ResultsError, match="not a results folder"):
        ropewalk.open(tmp_path)
    with pytest.raises(ValueError, match="at least 1"):
        Scenario.parse(TEXT).run(jobs=0)
