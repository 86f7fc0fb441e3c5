"""CPU seconds of a run whose controller is a Python class, compared with the built-in one and, if installed, the Rust
plug-in of examples/plugin: the same algorithm (Reno), the same digest. Interleaved, median and range of the ratios.

    python python/benchmarks/controller.py [ROUNDS]
"""

from __future__ import annotations

import statistics
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

import algorithms  # noqa: F401

from ropewalk import Scenario
from ropewalk.algorithm import controllers

TEXT = """
name = "cost"
duration = "60s"
seeds = [1]

[[path]]
name = "link"
rate = "50mbit"
delay = "20ms"
queue = { limit = "1bdp" }

[[flow]]
name = "tcp"
congestion = "NAME"
"""


def cpu_seconds(scenario: Scenario) -> tuple[float, str]:
    """CPU seconds and the digest of one run."""
    start = time.process_time()
    digest = scenario.run(jobs=1, progress=False).digest
    return time.process_time() - start, str(digest)


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 11
    names = ["reno", *(name for name in ("gaimd", "py-reno") if name in controllers())]
    scenarios = {name: Scenario.parse(TEXT.replace("NAME", name)) for name in names}
    times: dict[str, list[float]] = {name: [] for name in names}
    digests = {cpu_seconds(scenario)[1] for scenario in scenarios.values()}
    assert len(digests) == 1, "the algorithms differ"
    for _ in range(rounds):
        for name, scenario in scenarios.items():
            times[name].append(cpu_seconds(scenario)[0])
    for name in names[1:]:
        ratios = sorted(own / built_in for own, built_in in zip(times[name], times["reno"], strict=True))
        print(f"{name} / reno: {statistics.median(ratios):.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f}, {rounds} pairs)")


if __name__ == "__main__":
    main()
