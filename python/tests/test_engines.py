"""Studies on Ray, Dask and submitit. Each engine is tested where it is installed."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable
from pathlib import Path

import pytest

from ropewalk import Results, Scenario
from ropewalk._executor import Task, run_shard


def same(one: Results, other: Results) -> None:
    assert one.complete
    assert one.digest == other.digest
    assert one.runs.to_dict() == other.runs.to_dict()


def test_dask(scenario: Scenario, results: Results) -> None:
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        same(scenario.run(executor=client.get_executor(), shards=4, progress=False), results)


def test_submitit(scenario: Scenario, results: Results, tmp_path: Path) -> None:
    submitit = pytest.importorskip("submitit")
    executor = submitit.AutoExecutor(folder=tmp_path / "log", cluster="local")
    executor.update_parameters(timeout_min=5)
    same(scenario.run(executor=executor, shards=3, shared=tmp_path / "shards", progress=False), results)
    same(scenario.run(executor=executor, shards=2, progress=False), results)


def waiting(folder: Path) -> Callable[[Task], str | bytes]:
    """A shard that says where it begins, waits for the file `go`, and on the node `dead` until it is killed."""

    def run_shard_there(task: Task) -> str | bytes:
        import ray

        node = ray.get_runtime_context().get_node_id()
        (folder / f"{task.shard[0]}-{node}-{uuid.uuid4().hex}").touch()
        while not (folder / "go").exists() or (folder / "dead").read_text() == node:
            time.sleep(0.05)
        return run_shard(task)

    return run_shard_there


def test_ray_with_a_node_that_dies(
    scenario: Scenario, results: Results, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("ray")
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    import ray
    from ray.cluster_utils import Cluster

    from ropewalk import _executor
    from ropewalk.ray import RayExecutor

    monkeypatch.setattr(_executor, "run_shard", waiting(tmp_path))
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    doomed = cluster.add_node(num_cpus=1)
    made: list[Results] = []
    try:
        ray.init(address=cluster.address, include_dashboard=False)
        cluster.wait_for_nodes()
        study = threading.Thread(
            target=lambda: made.append(scenario.run(executor=RayExecutor(), shards=6, progress=False))
        )
        study.start()
        nodes: set[str] = set()
        while len(nodes) < 2 and study.is_alive():  # a shard is under way on each of the two
            nodes = {path.name.split("-")[1] for path in tmp_path.glob("*-*")}
            time.sleep(0.05)
        (tmp_path / "dead").write_text(doomed.node_id)
        (tmp_path / "go").touch()
        cluster.remove_node(doomed, allow_graceful=False)
        study.join()
    finally:
        ray.shutdown()
        cluster.shutdown()  # type: ignore[no-untyped-call]
    (one,) = made
    same(one, results)
    begun = [path.name.split("-")[:2] for path in tmp_path.glob("*-*")]
    assert any(node == doomed.node_id for _, node in begun)
    shards_there = {shard for shard, node in begun if node == doomed.node_id}
    again = {shard for shard, node in begun if node != doomed.node_id}
    assert again == {str(shard) for shard in range(1, 7)}, "every shard was made on the node that lives"
    assert shards_there <= again
