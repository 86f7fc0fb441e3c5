"""A scheduler's decisions packet by packet, and several learners in one scenario."""

from __future__ import annotations

import copy
import math
import pickle
from typing import Any

import pytest

np = pytest.importorskip("numpy")
gymnasium = pytest.importorskip("gymnasium")
pytest.importorskip("pettingzoo")

from gymnasium.error import ResetNeeded  # noqa: E402
from gymnasium.spaces import Discrete  # noqa: E402
from gymnasium.utils.env_checker import check_env  # noqa: E402
from pettingzoo.test import parallel_api_test  # type: ignore[import-untyped]  # noqa: E402

from conftest import ROOT  # noqa: E402
from ropewalk import ActionError, ConfigError, Scenario  # noqa: E402
from ropewalk.learning import packet_features, parallel_env, scenario_env, scenario_parallel_env  # noqa: E402

TEXT = """
name = "two"
duration = "1s"

[[path]]
name = "wifi"
rate = "8mbit"
delay = "8ms"
loss = "0.5%"

[[path]]
name = "lte"
rate = "4mbit"
delay = "30ms"

[[flow]]
name = "download"
kind = "mptcp"

[[flow]]
name = "other"
kind = "mptcp"
start = "200ms"

[[flow]]
name = "film"
path = "wifi"
video = { kind = "live", rate = "1mbit" }
"""
PLACE = {feature.name: index for index, feature in enumerate(packet_features()[0])}


@pytest.fixture
def two() -> Scenario:
    return Scenario.parse(TEXT)


def minrtt(observation: Any) -> int:
    """The scheduler `minrtt` by what an environment shows."""
    paths = observation[: 2 * len(PLACE)].reshape(2, -1)
    open_paths = paths[:, PLACE["usable"]] * paths[:, PLACE["has_room"]] == 1
    return int(np.where(open_paths, paths[:, PLACE["srtt_ms"]], np.inf).argmin())


def play(env: Any, choose: Any, seed: int) -> list[float]:
    observation, _ = env.reset(seed=seed)
    rewards, truncated = [], False
    while not truncated:
        observation, reward, _, truncated, _ = env.step(choose(observation))
        rewards.append(reward)
    return rewards


def test_a_policy_of_packets_gives_the_run_of_the_scheduler_that_decides_so(two: Scenario) -> None:
    env = scenario_env(two, "download", decides="packet", reward={"throughput_mbps": 1.0})
    assert env.action_space == Discrete(2)
    rewards = play(env, minrtt, seed=2)
    baseline = env.baseline("minrtt")
    assert env.results().digest == baseline.results.digest
    assert math.isclose(sum(rewards), baseline.total, rel_tol=1e-9)
    play(env, lambda _: 1, seed=2)
    fixed = env.scenario()
    fixed.set("flow.download.scheduler", {"name": "fixed", "path": 1})
    assert env.results().digest == fixed.run(progress=False).digest != baseline.results.digest


def test_an_environment_of_packets_keeps_to_gymnasium(two: Scenario) -> None:
    env = scenario_env(two, "download", decides="packet")
    check_env(env, skip_render_check=True)
    observation, info = env.reset(seed=1)
    assert observation in env.observation_space
    assert info["time_s"] > 0 and "rtt_ms" in info
    for _ in range(50):
        env.step(0)
    for twin in (copy.deepcopy(env), pickle.loads(pickle.dumps(env))):
        one, other = copy.deepcopy(env).step(1), twin.step(1)
        assert np.array_equal(one[0], other[0]) and one[1:] == other[1:]
    with pytest.raises(ActionError):
        env.step(2)
    with pytest.raises(ConfigError, match="history: a scheduler of packets sees the paths as they are"):
        scenario_env(two, "download", decides="packet", history=2)


def test_the_reference_describes_what_is_observed_at_a_packet() -> None:
    page = (ROOT / "docs/reference/policies.md").read_text()
    of_path, of_connection = packet_features()
    for feature in (*of_path, *of_connection):
        assert f"| `{feature.name}` | {feature.unit} | {feature.description} |".replace("|  |", "| |") in page


def test_drawn_worlds_and_vectorised_ones_decide_by_packets_too() -> None:
    keys: dict[str, Any] = {"decides": "packet", "duration_s": 0.5}
    vector = gymnasium.make_vec("Ropewalk/Multipath-v0", 3, vectorization_mode="vector_entry_point", **keys)
    seen = [vector.reset(seed=5)[0], *[vector.step(np.array([0, 1, 0]))[0] for _ in range(40)]]
    for index, path in enumerate((0, 1, 0)):
        single = gymnasium.make("Ropewalk/Multipath-v0", **keys)
        alone = [single.reset(seed=5 + index)[0], *[single.step(path)[0] for _ in range(40)]]
        assert np.array_equal(alone, [row[index] for row in seen])
    agents = parallel_env(2, [{"rate_mbps": 4, "rtt_ms": 20}] * 2, decides="packet", duration_s=0.3)
    parallel_api_test(agents, num_cycles=50)


def test_two_learners_that_do_nothing_give_the_run_of_their_scenario(two: Scenario) -> None:
    env = scenario_parallel_env(two, ["download", "other"], action="cubic_steering")
    assert env.possible_agents == ["download", "other"]
    env.reset(seed=3)
    with pytest.raises(ResetNeeded, match="not over"):
        env.results()
    rewards = dict.fromkeys(env.agents, 0.0)
    while env.agents:
        _, step, *_ = env.step({agent: np.zeros(2) for agent in env.agents})
        rewards = {agent: rewards[agent] + step[agent] for agent in rewards}
    assert env.results().digest == env.scenario().run(progress=False).digest
    assert all(reward > 0 for reward in rewards.values())


@pytest.mark.parametrize("decides", ["subflows", "weights", "path", "packet"])
def test_learners_in_a_scenario_keep_to_pettingzoo(two: Scenario, decides: Any) -> None:
    env = scenario_parallel_env(two, ["other", "download"], decides=decides)
    parallel_api_test(env, num_cycles=30)
    env.reset(seed=1, options={"scenario": Scenario.parse(TEXT, set={"path.wifi.rate": "2mbit"})})
    assert env.step({agent: env.action_space(agent).sample() for agent in env.agents})[4]["other"]["capacity_mbps"] == 6


def test_learners_that_cannot_be_had_are_refused(two: Scenario) -> None:
    with pytest.raises(ConfigError, match="`download` has 2 paths and `film` 1"):
        scenario_parallel_env(two, ["download", "film"])
    with pytest.raises(ConfigError, match="`other` is given twice"):
        scenario_parallel_env(two, ["other", "other"])
    with pytest.raises(ConfigError, match="agents: 0"):
        scenario_parallel_env(two, [])
    with pytest.raises(ConfigError, match="did you mean `other`"):
        scenario_parallel_env(two, "othr")
    with pytest.raises(TypeError, match="unexpected keyword argument 'agents'"):
        scenario_parallel_env(two, ["other"], agents=2)  # type: ignore[call-arg]
