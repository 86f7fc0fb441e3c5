"""The cost of an executor: its overhead per shard, and a study on two workers compared with two threads.

    python python/benchmarks/executors.py [--rounds 3] [--set duration=10s] [--engines processes,ray] [SCENARIO]

The overhead is that of a study whose 64 runs take under a millisecond each, in 64 shards: the wall time of the executor
minus that of one thread in this process, over 64. The study (by default the 660 runs of al-imareen-2024, whole) runs in
turn with `jobs=2` and with each engine on two workers, round by round; the speed is the ratio of the wall times of one
round, next to the ratio of CPU seconds. Engines start before the clock does. It needs a quiet machine.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

from ropewalk import Results, Scenario

os.environ.update(RAY_AUTH_MODE="disabled", RAY_USAGE_STATS_ENABLED="0")

STUDY = Path(__file__).parents[2] / "scenarios/papers/al-imareen-2024.toml"
SMALL = """
name = "small"
duration = "20ms"
repetitions = 64

[[path]]
name = "link"
rate = "1mbit"
delay = "5ms"

[[flow]]
name = "tcp"
"""
SHARDS = 64
WORKERS = 2


@contextlib.contextmanager
def processes() -> Iterator[Any]:
    with ProcessPoolExecutor(WORKERS) as executor:
        yield executor


@contextlib.contextmanager
def ray() -> Iterator[Any]:
    import ray

    from ropewalk.ray import RayExecutor

    ray.init(num_cpus=WORKERS, include_dashboard=False, log_to_driver=False)
    yield RayExecutor()
    ray.shutdown()


@contextlib.contextmanager
def dask() -> Iterator[Any]:
    distributed: Any = importlib.import_module("distributed")
    cluster = distributed.LocalCluster(n_workers=WORKERS, threads_per_worker=1, dashboard_address=None)
    with cluster, distributed.Client(cluster) as client:
        yield client.get_executor()


@contextlib.contextmanager
def submitit() -> Iterator[Any]:
    import submitit

    with tempfile.TemporaryDirectory() as folder:
        executor = submitit.AutoExecutor(folder=folder, cluster="local")
        executor.update_parameters(timeout_min=60)
        yield executor


ENGINES: dict[str, Callable[[], contextlib.AbstractContextManager[Any]]] = {
    "processes": processes,
    "ray": ray,
    "dask": dask,
    "submitit": submitit,
}


def timed(work: Callable[[], Results]) -> tuple[float, float, Results]:
    """Wall seconds, CPU seconds of the whole machine, and the results."""
    start, busy = time.perf_counter(), busy_s()
    results = work()
    return time.perf_counter() - start, busy_s() - busy, results


def busy_s() -> float:
    """CPU time of all programs, seconds: that of an engine's workers is not that of our children."""
    fields = [int(field) for field in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]]
    user, nice, system = fields[:3]
    return (user + nice + system) / os.sysconf("SC_CLK_TCK")


def shard_overhead(executor: Any) -> float:
    scenario = Scenario.parse(SMALL)
    scenario.run(executor=executor, shards=WORKERS, progress=False)  # workers import the package
    alone, _, one = timed(lambda: scenario.run(jobs=1, progress=False))
    wall, _, many = timed(lambda: scenario.run(executor=executor, shards=SHARDS, progress=False))
    assert many.digest == one.digest
    return (wall - alone) / SHARDS


def one_round(scenario: Scenario, executor: Any, shards: int | None) -> tuple[float, float]:
    """Time of the threads of this process relative to the executor: wall time, and CPU seconds."""
    alone, alone_cpu, one = timed(lambda: scenario.run(jobs=WORKERS, progress=False))
    wall, wall_cpu, many = timed(lambda: scenario.run(executor=executor, shards=shards, progress=False))
    assert many.digest == one.digest
    return alone / wall, alone_cpu / wall_cpu


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("scenario", nargs="?", default=STUDY, type=Path)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--engines", default=",".join(ENGINES))
    options = parser.parse_args()
    scenario = Scenario.load(options.scenario, set=dict(item.split("=", 1) for item in options.set))
    runs = len(scenario.cells) * len(scenario.seeds)
    print(f"{scenario.name}: {runs} runs, {options.rounds} rounds", flush=True)
    for name in options.engines.split(","):
        with ENGINES[name]() as executor:
            overhead = shard_overhead(executor)
            # A job of submitit's local executor is a process of its own, and all of them start at once.
            shards = WORKERS if name == "submitit" else None
            ratios = [one_round(scenario, executor, shards) for _ in range(options.rounds)]
        speeds, cpu = zip(*ratios, strict=True)
        rounds = " ".join(f"{speed:.2f}" for speed in speeds)
        print(
            f"{name:10} {overhead * 1000:7.1f} ms per shard   speed relative to jobs={WORKERS}: {rounds}, median"
            f" {statistics.median(speeds):.2f}   by CPU seconds of the machine: {statistics.median(cpu):.2f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
