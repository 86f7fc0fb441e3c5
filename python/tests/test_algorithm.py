"""Controllers and schedulers in Python: as the built-in ones where they are the same, and errors that say what is
wrong."""

from __future__ import annotations

import ast
import math
import os
import pickle
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import algorithms
import pytest

import ropewalk
from ropewalk import (
    Results,
    ResultsError,
    RunError,
    Scenario,
    ScenarioError,
    algorithm,
    check_controller,
    check_scheduler,
    register_controller,
    register_scheduler,
)
from ropewalk.algorithm import (
    Ack,
    CongestionOps,
    CwndState,
    Decision,
    PathController,
    PathEvent,
    Pick,
    Scheduler,
    SchedulerView,
    SpuriousLoss,
    controllers,
    schedulers,
)

TEXT = """
name = "own"
duration = "3s"
seeds = [1, 2]

[[path]]
name = "a"
rate = "10mbit"
delay = "10ms"
loss = "0.2%"
queue = { limit = "1bdp" }

[[path]]
name = "b"
rate = "5mbit"
delay = "30ms"
queue = { limit = "1bdp" }

[[flow]]
name = "flow"
kind = "mptcp"
subflow = [{ path = "a" }, { path = "b" }]
congestion = "CONGESTION"
scheduler = "SCHEDULER"
"""


def scenario(congestion: str = "reno", scheduler: str = "minrtt", **sets: Any) -> Scenario:
    text = TEXT.replace("CONGESTION", congestion).replace("SCHEDULER", scheduler)
    return Scenario.parse(text, set=sets)


def run(congestion: str = "reno", scheduler: str = "minrtt", jobs: int = 1) -> Results:
    return scenario(congestion, scheduler).run(progress=False, jobs=jobs)


def subflow_windows(own: Scenario) -> set[float]:
    """The windows of subflows that a run records after its first second."""
    series = own.run(progress=False).series.to_pandas()
    later = series[series["subject"].str.startswith("subflow") & (series["time_s"] > 1)]
    return set(later["cwnd_packets"])


def broken(fault: type[PathController | CongestionOps]) -> set[str]:
    return {violation.rule for violation in check_controller(fault)}


class Facts:
    name = "faulty"
    title = "Reno with a fault"
    source = "a test"


def test_reno_in_python_is_the_built_in_one_to_the_last_bit() -> None:
    assert run("py-reno").digest == run("reno").digest
    assert run("py-reno").digest != run("cubic").digest
    assert check_controller(algorithms.PyReno) == []


def test_minrtt_in_python_is_the_built_in_one_to_the_last_bit() -> None:
    assert run(scheduler="py-minrtt").digest == run(scheduler="minrtt").digest
    assert run(scheduler="py-minrtt").digest != run(scheduler="redundant").digest
    assert check_scheduler(algorithms.PyMinRtt) == []


def test_two_threads_give_the_same_runs() -> None:
    assert run("py-reno", jobs=2).digest == run("py-reno", jobs=1).digest


def test_a_fixed_window_is_the_window_that_a_run_records() -> None:
    own = scenario("py-fixed", sample="100ms")
    own.set("flow.flow.congestion", {"name": "py-fixed", "packets": 7.9})
    assert subflow_windows(own) == {7}, "whole packets, on both subflows"


def test_a_group_decides_for_each_path_of_its_connection() -> None:
    assert subflow_windows(scenario("py-shared", sample="100ms")) == {20}, "forty packets over two paths"


def test_parameters_are_declared_checked_and_given() -> None:
    wrong = scenario("reno")
    wrong.set("flow.flow.congestion", {"name": "py-fixed", "packets": 5000})
    with pytest.raises(ScenarioError, match="1 to 1000"):
        wrong.run(progress=False)
    wrong.set("flow.flow.congestion", {"name": "py-fixed", "pace": "maybe"})
    with pytest.raises(ScenarioError, match="one of off, on"):
        wrong.run(progress=False)


def test_an_unknown_name_is_answered_with_a_registered_one() -> None:
    with pytest.raises(ScenarioError, match="did you mean `py-reno`"):
        run("py-renoo")


def test_registered_names_are_listed_after_the_built_in_ones() -> None:
    assert controllers().index("py-reno") > controllers().index("cubic")
    assert schedulers().index("py-minrtt") > schedulers().index("minrtt")


def test_a_class_may_be_registered_again_and_replaces_the_former() -> None:
    def halving(packets: int) -> None:
        @register_controller
        class Again(PathController):
            name = "py-again"
            title = "a window"
            source = "a test"

            def on_event(self, event: PathEvent, now_ns: int) -> Decision:
                return Decision(packets)

    halving(4)
    first = run("py-again").digest
    halving(8)
    assert controllers().count("py-again") == 1
    assert run("py-again").digest != first


def test_built_in_names_cannot_be_taken() -> None:
    with pytest.raises(ValueError, match="`cubic` is built in"):
        register_controller(type("Cubic", (algorithms.PyReno,), {"name": "cubic"}))
    with pytest.raises(ValueError, match="small letters"):
        register_controller(type("Bad", (algorithms.PyReno,), {"name": "My Reno"}))
    with pytest.raises(TypeError, match="class attribute `title`"):
        register_controller(type("Bare", (PathController,), {"name": "bare"}))


def test_an_exception_ends_the_run_with_its_traceback_and_the_event() -> None:
    @register_controller
    class Raising(PathController):
        name = "py-raising"
        title = "raises"
        source = "a test"

        def on_event(self, event: PathEvent, now_ns: int) -> Decision:
            if isinstance(event, Ack) and event.delivered > 20:
                raise KeyError("no such thing")
            return Decision(10)

    with pytest.raises(RunError) as raised:
        run("py-raising")
    text = str(raised.value)
    assert "`py-raising` failed at" in text and "on Ack(acked=" in text and "delivered=2" in text
    assert "Traceback (most recent call last)" in text and 'raise KeyError("no such thing")' in text
    assert "KeyError: 'no such thing'" in text
    assert "with seed" in text


@pytest.mark.parametrize(
    ("decision", "message"),
    [
        ("Decision(0)", "cwnd is 0: at least 1 packet"),
        ("Decision(math.nan)", "cwnd is NaN"),
        ("Decision(math.inf)", "cwnd is inf"),
        ("Decision(10, -1)", "ssthresh is -1"),
        ("Decision(10, math.nan)", "ssthresh is NaN"),
        ("Decision(10, pacing_rate_bps=-5)", "pacing_rate_bps is -5: above 0"),
        ("Decision(10, pacing_rate_bps=0)", "pacing_rate_bps is 0: above 0"),
        ("Decision(10, pacing_rate_bps=math.nan)", "pacing_rate_bps is NaN"),
        ("None", "on_event returned None, not a Decision"),
        ("10", "on_event returned 10, not a Decision"),
    ],
)
def test_a_wrong_decision_is_an_error_that_says_so(decision: str, message: str) -> None:
    namespace: dict[str, Any] = {"Decision": Decision, "math": math, "PathController": PathController}
    exec(
        f"""class Wrong(PathController):
        name, title, source = "py-wrong", "wrong", "a test"
        def on_event(self, event, now_ns):
            return {decision}
        """,
        namespace,
    )
    register_controller(namespace["Wrong"])
    with pytest.raises(RunError) as raised:
        run("py-wrong")
    assert message in str(raised.value)


def test_a_class_that_cannot_be_made_is_an_error_of_the_run() -> None:
    @register_controller
    class NoArguments(algorithms.FixedWindow):
        name = "py-no-arguments"

        def __init__(self) -> None:
            pass

    with pytest.raises(RunError, match=r"(?s)`py-no-arguments` cannot be made.*TypeError"):
        run("py-no-arguments")


def test_the_suite_finds_growth_of_an_unfilled_window() -> None:
    class Fault(Facts, CongestionOps):
        def cong_avoid(self, state: CwndState, acked: int, ack: Ack, now_ns: int) -> None:
            state.cwnd += acked

        def on_ack(self, state: CwndState, ack: Ack, now_ns: int) -> None:
            state.cwnd += 1

        def ssthresh(self, state: CwndState, now_ns: int) -> float:
            return max(state.cwnd // 2, 2)

    assert "an unfilled cwnd does not grow" in broken(Fault)


def test_the_suite_finds_a_threshold_below_two_with_the_steps_that_show_it() -> None:
    class Fault(algorithms.PyReno):
        def ssthresh(self, state: CwndState, now_ns: int) -> float:
            return state.cwnd // 2

    rule = "ssthresh is at least two packets"
    violation = next(violation for violation in check_controller(Fault) if violation.rule == rule)
    assert 0 < len(violation.steps) <= 6
    assert "1. path" in str(violation)


def test_the_suite_finds_what_undo_does_not_restore() -> None:
    class Fault(algorithms.PyReno):
        def undo_cwnd(self, state: CwndState) -> float:
            return max(1, state.prior_cwnd - 1)

    assert "undo restores cwnd and ssthresh" in broken(Fault)


def test_the_suite_finds_state_that_is_shared_between_runs() -> None:
    class Fault(algorithms.PyReno):
        calls = 0

        def ssthresh(self, state: CwndState, now_ns: int) -> float:
            Fault.calls += 1
            return max(state.cwnd // 2, 2) + Fault.calls % 3

    assert "it is deterministic" in broken(Fault)


def test_the_suite_finds_an_exception_and_says_on_which_event() -> None:
    class Fault(Facts, PathController):
        def on_event(self, event: PathEvent, now_ns: int) -> Decision:
            if isinstance(event, SpuriousLoss):
                raise RuntimeError("not written yet")
            return Decision(10)

    messages = [violation.message for violation in check_controller(Fault) if violation.rule == "it never fails"]
    assert len(messages) == 1
    assert "on SpuriousLoss()" in messages[0] and "not written yet" in messages[0]


def test_the_suite_finds_missing_descriptions() -> None:
    class Fault(algorithms.PyReno):
        title = ""

    assert broken(Fault) == {"title, source and parameters are described"}


@pytest.mark.parametrize(
    ("answer", "rule"),
    [
        ("None", "it does not wait while nothing is in flight"),
        ("Pick.next(7)", "it never fails"),
        ("Pick.next(view.paths_with_room()[0][0]) if view.paths_with_room() else None", "it picks new data only"),
    ],
)
def test_the_suite_finds_wrong_picks(answer: str, rule: str) -> None:
    namespace: dict[str, Any] = {"Pick": Pick, "Scheduler": Scheduler}
    exec(
        f"""class Wrong(Scheduler):
        name, title, source = "py-wrong-pick", "wrong", "a test"
        def pick(self, view):
            return {answer}
        """,
        namespace,
    )
    assert any(violation.rule.startswith(rule) for violation in check_scheduler(namespace["Wrong"]))


def test_a_scheduler_that_picks_a_full_path_ends_the_run() -> None:
    @register_scheduler
    class Full(Scheduler):
        name = "py-full"
        title = "the first path, always"
        source = "a test"

        def pick(self, view: SchedulerView) -> Pick | None:
            return Pick.next(7)

    with pytest.raises(RunError, match=r"(?s)`py-full` failed.*path 7, which has no room or does not exist"):
        run(scheduler="py-full")


def controller_source(step: int) -> str:
    return f"""
from ropewalk.algorithm import Decision, PathController
STEP = {step}
def packets():
    return 10 + STEP
class Edited(PathController):
    name, title, source = "py-edited", "edited", "a test"
    def on_event(self, event, now_ns):
        return Decision(packets())
"""


def load(path: Path, step: int) -> None:
    """Register the class of a module that was just edited."""
    path.write_text(controller_source(step))
    sys.modules.pop(path.stem, None)
    namespace: dict[str, Any] = {"__name__": f"edited_{step}"}
    exec(compile(path.read_text(), str(path), "exec"), namespace)
    register_controller(namespace["Edited"])


def test_results_of_edited_code_are_not_resumed(tmp_path: Path) -> None:
    out = tmp_path / "results"
    load(tmp_path / "edited.py", 1)
    first = scenario("py-edited").run(progress=False, out=out)
    load(tmp_path / "edited.py", 1)
    assert scenario("py-edited").run(progress=False, out=out).digest == first.digest, "the same code is the same study"
    load(tmp_path / "edited.py", 2)
    with pytest.raises(ResultsError, match="py-edited"):
        scenario("py-edited").run(progress=False, out=out)


def digest_in_worker(pickled: bytes) -> str:
    loaded: Scenario = pickle.loads(pickled)
    return str(loaded.run(progress=False, jobs=1).digest)


def test_a_worker_process_that_imports_the_module_has_the_class() -> None:
    pickled = pickle.dumps(scenario("py-reno"))
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as executor:
        assert executor.submit(digest_in_worker, pickled).result() == run("reno").digest
    # A process that has never seen the class gets it by the pickle alone.
    program = "import sys, pickle; print(pickle.loads(sys.stdin.buffer.read()).run(progress=False, jobs=1).digest)"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", program]
    answer = subprocess.run(command, input=pickled, capture_output=True, check=True, env=environment)
    assert answer.stdout.decode().strip() == run("reno").digest


def test_help_describes_events_as_the_types_do() -> None:
    stub = ast.parse((Path(ropewalk.__file__).parent / "_native.pyi").read_text())
    classes = {node.name: node for node in stub.body if isinstance(node, ast.ClassDef)}
    for event in (algorithm.PathUp, algorithm.PathDown, algorithm.Ack, algorithm.RateSample):
        described = classes[event.__name__]
        assert event.__doc__ == ast.get_docstring(described)
        for node in described.body:
            if isinstance(node, ast.FunctionDef):
                expected = " ".join((ast.get_docstring(node) or "").split())
                assert getattr(event, node.name).__doc__ == expected, node.name
