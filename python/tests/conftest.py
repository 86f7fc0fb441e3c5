"""What tests share."""

from __future__ import annotations

import os
import signal
import sysconfig
from pathlib import Path

import matplotlib
import pytest

from ropewalk import Results, Scenario

matplotlib.use("Agg")
# A shell starts background jobs with SIGINT ignored, and Python keeps that.
signal.signal(signal.SIGINT, signal.default_int_handler)

ROOT = Path(__file__).parents[2]

TEXT = """
name = "two"
duration = "2s"
sample = "100ms"
seeds = [1, 2, 3]

[[path]]
name = "link"
rate = "10mbit"
delay = "10ms"
loss = "0.1%"
queue = { limit = "1bdp" }

[[flow]]
name = "tcp"
congestion = "cubic"

[sweep]
"flow.tcp.congestion" = ["reno", "bbr"]
"path.link.delay" = ["5ms", "20ms"]
"""


@pytest.fixture(scope="session")
def scenario() -> Scenario:
    return Scenario.parse(TEXT)


@pytest.fixture(scope="session")
def results(scenario: Scenario) -> Results:
    return scenario.run(progress=False)


@pytest.fixture(scope="session")
def command() -> Path:
    """The program of the wheel."""
    path = Path(sysconfig.get_path("scripts")) / "ropewalk"
    if not path.exists():
        pytest.skip("no command `ropewalk` here: `cargo xtask wheel` builds it into the wheel")
    return path


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Note a skipped test for `cargo xtask test`: the file of this name has a line for each."""
    notes = os.environ.get("ROPEWALK_SKIPS")
    if notes and report.skipped:
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        with open(notes, "a", encoding="utf-8") as file:
            file.write(f"missing pytest::{report.nodeid}: {reason}\n")
