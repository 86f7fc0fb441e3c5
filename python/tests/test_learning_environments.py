"""Environments: their interfaces, and the same episodes one by one, vectorised, by processes and for any threads."""

from __future__ import annotations

import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

np = pytest.importorskip("numpy")
gymnasium = pytest.importorskip("gymnasium")

from gymnasium.utils.env_checker import check_env  # noqa: E402
from gymnasium.vector import AutoresetMode  # noqa: E402

import ropewalk.learning  # noqa: E402
from ropewalk.learning import PathRanges  # noqa: E402
from ropewalk.learning.environments import MultipathEnv, SinglePathEnv  # noqa: E402

SINGLE, MULTI = "Ropewalk/SinglePath-v0", "Ropewalk/Multipath-v0"
SHORT: dict[str, Any] = {"duration_s": 0.5, "rivals": {"count": [0, 1]}}


def episode(env: Any, seed: int | None, steps: int) -> tuple[Any, ...]:
    """Observations, rewards and ends of so many steps, with a reset after each end; and the actions."""
    actions = np.random.default_rng(5).uniform(-1, 1, (steps, *env.action_space.shape)).astype(np.float32)
    observation, _ = env.reset(seed=seed)
    observations, rewards, ends, ended = [observation], [0.0], [False], False
    for action in actions:
        if ended:
            (observation, _), reward, ended = env.reset(), 0.0, False
        else:
            observation, reward, terminated, ended, _ = env.step(action)
            assert not terminated
        observations.append(observation)
        rewards.append(reward)
        ends.append(ended)
    return np.stack(observations), np.array(rewards), np.array(ends), actions


@pytest.mark.parametrize("name", [SINGLE, MULTI])
@pytest.mark.parametrize("keys", [{}, {"observation": "sage", "action": "window_change", "interval": "rtt"}])
def test_gymnasiums_checks_pass(name: str, keys: dict[str, Any]) -> None:
    check_env(gymnasium.make(name, **keys).unwrapped)


def test_weights_pass_gymnasiums_checks() -> None:
    check_env(MultipathEnv(decides="weights"))


def test_the_name_with_its_module_is_enough() -> None:
    env = gymnasium.make(f"ropewalk.learning:{SINGLE}", observation="orca", action="cubic_steering", interval="20ms")
    assert env.observation_space.shape == (7,)
    assert env.action_space.shape == (1,)


@pytest.mark.parametrize("name", [SINGLE, MULTI])
def test_a_seed_gives_its_episode_again(name: str) -> None:
    first, second, other = (episode(gymnasium.make(name, **SHORT), seed, 60) for seed in (1, 1, 2))
    for one, two in zip(first, second, strict=True):
        np.testing.assert_array_equal(one, two)
    assert not np.array_equal(first[0], other[0])


@pytest.mark.parametrize("name", [SINGLE, MULTI])
@pytest.mark.parametrize("threads", [1, 2, 3])
def test_vectorised_worlds_are_those_of_single_environments(name: str, threads: int) -> None:
    count, steps = 4, 120
    vector = gymnasium.make_vec(name, num_envs=count, vectorization_mode="vector_entry_point", threads=threads, **SHORT)
    assert vector.metadata["autoreset_mode"] is AutoresetMode.NEXT_STEP
    singles = [episode(gymnasium.make(name, **SHORT), 7 + index, steps) for index in range(count)]
    observation, infos = vector.reset(seed=7)
    reward, truncated = np.zeros(count), np.zeros(count, dtype=bool)
    assert set(infos) >= {"throughput_mbps", "_throughput_mbps", "rtt_ms"}
    for step in range(steps + 1):
        for index, (observations, rewards, ends, _) in enumerate(singles):
            np.testing.assert_array_equal(observation[index], observations[step])
            assert (reward[index], truncated[index]) == (rewards[step], ends[step])
        if step < steps:
            actions = np.stack([actions[step] for *_, actions in singles])
            observation, reward, terminated, truncated, _ = vector.step(actions)
            assert not terminated.any()
    vector.close()


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_gymnasiums_own_vectorisation_gives_the_same(mode: str) -> None:
    ours = gymnasium.make_vec(MULTI, num_envs=2, vectorization_mode="vector_entry_point", **SHORT)
    theirs = gymnasium.make_vec(MULTI, num_envs=2, vectorization_mode=mode, **SHORT)
    actions = np.random.default_rng(3).uniform(-1, 1, (100, 2, 2)).astype(np.float32)
    np.testing.assert_array_equal(ours.reset(seed=3)[0], theirs.reset(seed=3)[0])
    for action in actions:
        for one, two in zip(ours.step(action)[:4], theirs.step(action)[:4], strict=True):
            np.testing.assert_array_equal(one, two)
    theirs.close()


def test_a_mask_resets_some_worlds_and_leaves_the_others() -> None:
    vector = gymnasium.make_vec(SINGLE, num_envs=2, vectorization_mode="vector_entry_point", **SHORT)
    first, _ = vector.reset(seed=1)
    second, *_ = vector.step(np.zeros((2, 1), dtype=np.float32))
    third, _ = vector.reset(seed=[None, 2], options={"reset_mask": np.array([False, True])})
    np.testing.assert_array_equal(third[0], second[0])
    np.testing.assert_array_equal(third[1], first[1])


def test_on_an_empty_link_a_rate_is_delivered_and_the_latency_ratio_is_one() -> None:
    link: list[PathRanges] = [{"rate_mbps": [100, 100], "rtt_ms": [20, 20]}]
    env = SinglePathEnv(link, action="rate(1, 10)", observation=["latency_ratio"], interval="1000ms", duration_s=5)
    env.reset(seed=1)
    for _ in range(3):
        observation, *_, info = env.step(np.ones(1, dtype=np.float32))
    assert observation[0] == pytest.approx(1, abs=0.01)
    assert info["throughput_mbps"] == pytest.approx(10, abs=2 * 1448 * 8e-6)  # a packet more or less at either end


def test_worlds_are_narrowed_and_exchanged() -> None:
    ranges: list[PathRanges] = [{"rate_mbps": [1, 100], "rtt_ms": [10, 1000], "loss": [0, 0.1]}]
    (narrowed,) = ropewalk.learning.narrow(ranges, 0)
    assert narrowed == {"rate_mbps": [10, 10], "rtt_ms": [100, 100], "loss": [0.05, 0.05]}
    env = SinglePathEnv(ranges)
    _, info = env.reset(seed=1, options={"paths": [narrowed]})
    assert info["capacity_mbps"] == 10
    assert info["min_rtt_ms"] >= 100


def test_arrays_and_files_are_taken_where_lists_are(tmp_path: Path) -> None:
    rates = tmp_path / "rates.txt"
    rates.write_text("0 0\n2 12\n")  # 12 Mbit/s: a packet per millisecond
    traces: list[Any] = [np.arange(1, 2001), [*range(1, 2001)], str(rates), rates, np.arange(1, 2001, dtype=float)]
    seen = []
    for trace in traces:
        path: PathRanges = {"rtt_ms": np.array([20.0, 20.0]), "traces": [trace], "trace_offset_s": [0, 0]}
        env = SinglePathEnv([path], duration_s=np.float32(0.5), history=np.int64(2))
        observation, info = env.reset(seed=1)
        assert info["capacity_mbps"] == 12
        seen.append((observation, env.step(np.ones(1, dtype=np.float32))[0]))
    for other in seen[1:]:
        np.testing.assert_array_equal(other, seen[0])


def test_each_seed_begins_elsewhere_in_a_trace() -> None:
    # A packet per millisecond in the first half of 20 s, one per ten in the second.
    trace = np.concatenate([np.arange(1, 10_001), np.arange(10_010, 20_001, 10)])
    env = SinglePathEnv([{"rtt_ms": [20, 20], "traces": [trace]}], duration_s=2)
    capacities = [env.reset(seed=seed)[1]["capacity_mbps"] for seed in range(20)]
    assert capacities == [env.reset(seed=seed)[1]["capacity_mbps"] for seed in range(20)]
    assert {1.2, 12.0} <= {round(capacity, 1) for capacity in capacities}


def test_other_threads_run_while_worlds_are_stepped() -> None:
    vector = gymnasium.make_vec(MULTI, num_envs=64, vectorization_mode="vector_entry_point", threads=1)
    vector.reset(seed=1)
    actions = np.zeros((64, 2), dtype=np.float32)
    state: list[str] = []

    def step() -> None:
        state.append("before")
        vector.step(actions)
        state.append("after")

    def is_seen_in_a_step() -> bool:
        state.clear()
        thread = threading.Thread(target=step)
        thread.start()
        # No thread is made to give up the interpreter's lock: to see a step under way is owed to the step.
        seen = False
        while thread.is_alive():
            seen = seen or state == ["before"]
            time.sleep(0)  # gives it up
        thread.join()
        return seen

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1000)
    try:
        assert any(is_seen_in_a_step() for _ in range(1000))
    finally:
        sys.setswitchinterval(interval)


def test_an_episode_is_rendered() -> None:
    env = gymnasium.make(SINGLE, render_mode="ansi")
    env.reset(seed=1)
    assert "learner 0 of" in env.render()


def test_several_learners_pass_pettingzoos_tests() -> None:
    pytest.importorskip("pettingzoo")
    from pettingzoo.test import parallel_api_test, parallel_seed_test  # type: ignore[import-untyped]

    def make(**keys: Any) -> Any:
        return ropewalk.learning.parallel_env(3, duration_s=0.5, rivals={"count": [1, 1]}, **keys)

    parallel_api_test(make(), num_cycles=200)
    parallel_api_test(make(interval="rtt"), num_cycles=200)
    parallel_seed_test(make, num_cycles=100)
