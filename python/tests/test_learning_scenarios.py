"""Environments from scenarios: an episode is the run of the scenario; baselines; decisions of a scheduler."""

from __future__ import annotations

import copy
import math
import pickle
from pathlib import Path
from typing import Any

import pytest

np = pytest.importorskip("numpy")
gymnasium = pytest.importorskip("gymnasium")

from gymnasium.error import ResetNeeded  # noqa: E402
from gymnasium.spaces import Discrete, MultiDiscrete  # noqa: E402
from gymnasium.utils.env_checker import check_env  # noqa: E402

from ropewalk import ActionError, ConfigError, Policy, Scenario, ScenarioError  # noqa: E402
from ropewalk.learning import Episode, export_onnx, parallel_env, scenario_env  # noqa: E402

TEXT = """
name = "two"
duration = "2s"

[[path]]
name = "wifi"
rate = "20mbit"
delay = "8ms"
loss = "0.5%"
queue = { discipline = "codel", ecn = true }

[[path]]
name = "lte"
rate = "10mbit"
delay = "30ms"
jitter = "1ms"

[[flow]]
name = "download"
kind = "mptcp"
congestion = "lia"

[[flow]]
name = "film"
path = "wifi"
video = { kind = "live", rate = "2mbit" }

[[event]]
at = "1s"
path = "wifi"
up = false

[[event]]
at = "1200ms"
path = "wifi"
up = true

[sweep]
"path.lte.loss" = ["0%", { label = "much", value = "3%" }]
"""


@pytest.fixture
def two() -> Scenario:
    return Scenario.parse(TEXT)


def play(env: Any, action: Any, seed: int) -> list[float]:
    """The rewards of an episode with the same action in every step."""
    env.reset(seed=seed)
    rewards: list[float] = []
    truncated = False
    while not truncated:
        _, reward, _, truncated, _ = env.step(action)
        rewards.append(reward)
    return rewards


@pytest.mark.parametrize("flow", ["download", "film"])
def test_cubic_that_is_steered_by_nothing_gives_the_run_with_cubic(two: Scenario, flow: str) -> None:
    env = scenario_env(two, flow, action="cubic_steering")
    play(env, np.zeros(env.action_space.shape or ()), seed=3)
    of_scenario = env.scenario()
    of_scenario.set(f"flow.{flow}.congestion", "cubic")
    assert env.results().digest == of_scenario.run(progress=False).digest


def test_a_path_that_is_always_chosen_gives_the_run_with_that_path_fixed(two: Scenario) -> None:
    env = scenario_env(two, "download", decides="path")
    assert env.action_space == Discrete(2)
    digests = set()
    for path in (0, 1):
        play(env, path, seed=2)
        of_scenario = env.scenario()
        of_scenario.set("flow.download.scheduler", {"name": "fixed", "path": path})
        assert env.results().digest == of_scenario.run(progress=False).digest
        digests.add(env.results().digest)
    assert len(digests) == 2


def test_a_baseline_is_the_run_with_that_algorithm_and_the_return_of_the_same_steering(two: Scenario) -> None:
    env = scenario_env(two, "download", action="cubic_steering")
    rewards = play(env, np.zeros(2), seed=4)
    baseline = env.baseline("cubic")
    assert isinstance(baseline, Episode)
    assert (baseline.seed, baseline.rewards.tolist(), baseline.total) == (4, rewards, math.fsum(rewards))
    assert baseline.results.digest == env.results().digest
    assert 1.9 < baseline.infos["time_s"][-1] <= 2.0
    assert env.baseline().results.digest == env.scenario().run(progress=False).digest  # the flow's own LIA
    other = env.baseline("bbr", seed=5)
    assert (other.seed, other.total != baseline.total) == (5, True)
    with pytest.raises(ConfigError, match="did you mean `cubic`"):
        env.baseline("cubik")


def test_a_drawn_world_is_a_scenario_and_has_baselines() -> None:
    env = gymnasium.make(
        "Ropewalk/SinglePath-v0",
        duration_s=2,
        paths=[{"rate_mbps": [2, 20], "rtt_ms": [10, 50], "loss": [0, 0.02]}],
        rivals={"count": [1, 2], "algorithms": ["cubic", "bbr"]},
        action="cubic_steering",
    )
    world = env.unwrapped
    _, info = env.reset(seed=9)
    assert Scenario.parse(info["scenario"]).seeds == [9]
    rewards = play(env, np.zeros(1), seed=9)
    assert world.baseline("cubic").rewards.tolist() == rewards
    assert world.results().digest == Scenario.parse(info["scenario"]).run(progress=False).digest
    assert world.baseline("bbr").results.digest != world.results().digest
    traced = gymnasium.make("Ropewalk/SinglePath-v0", paths=[{"rtt_ms": 10, "traces": [[1, 2, 3]]}], duration_s=0.2)
    assert traced.reset(seed=1)[1]["scenario"] is None
    with pytest.raises(ConfigError, match="traces"):
        traced.unwrapped.scenario()


def test_the_seed_draws_the_cell_and_the_info_is_a_scenario_of_one_run(two: Scenario) -> None:
    env = scenario_env(two, "film")
    with pytest.raises(ResetNeeded):
        env.scenario()
    cells: set[str] = set()
    for seed in range(6):
        _, info = env.reset(seed=seed)
        again = Scenario.parse(info["scenario"])
        assert (again.seeds, again.cells) == ([seed], env.scenario().cells)
        assert again.run(progress=False).digest == env.scenario().run(progress=False).digest
        cells.update(cell["path.lte.loss"] for cell in again.cells)
        with pytest.raises(ResetNeeded, match="not over"):
            env.results()
    assert cells == {"0%", "much"}


def test_a_curriculum_changes_the_scenario(two: Scenario) -> None:
    env = scenario_env(two, "film")
    slow = Scenario.parse(TEXT, set={"path.wifi.rate": "4mbit"})
    _, info = env.reset(seed=1, options={"scenario": slow})
    assert info["capacity_mbps"] == 4
    assert Scenario.parse(info["scenario"]).run(progress=False).digest == env.scenario().run(progress=False).digest
    with pytest.raises(ConfigError, match="no option is called 'scenari'; did you mean 'scenario'"):
        env.reset(options={"scenari": slow})


@pytest.mark.parametrize("decides", ["subflows", "weights", "path"])
def test_the_checks_of_gymnasium_pass_and_copies_continue(two: Scenario, decides: Any) -> None:
    env = scenario_env(two, "download", decides=decides, interval="100ms")
    check_env(env, skip_render_check=True)
    env.action_space.seed(1)
    env.reset(seed=6)
    for _ in range(5):
        env.step(env.action_space.sample())
    for twin in (copy.deepcopy(env), pickle.loads(pickle.dumps(env))):
        action = env.action_space.sample()
        one, other = copy.deepcopy(env).step(action), twin.step(action)
        assert np.array_equal(one[0], other[0]) and one[1:] == other[1:]
        assert twin.scenario().hash == env.scenario().hash


@pytest.mark.parametrize("decides", ["subflows", "path"])
def test_vectorised_worlds_are_those_one_by_one(two: Scenario, decides: Any) -> None:
    keys: dict[str, Any] = {"scenario": two, "flow": "download", "decides": decides, "interval": "100ms"}
    single = gymnasium.make("Ropewalk/Scenario-v0", **keys)
    vector = gymnasium.make_vec("Ropewalk/Scenario-v0", 3, vectorization_mode="vector_entry_point", **keys)
    if decides == "path":
        assert vector.action_space == MultiDiscrete([2, 2, 2])
    observations, _ = vector.reset(seed=7)
    vector.action_space.seed(1)
    actions = [vector.action_space.sample() for _ in range(10)]
    steps = [vector.step(action) for action in actions]
    for index in range(3):
        first, _ = single.reset(seed=7 + index)
        assert np.array_equal(first, observations[index])
        for action, (seen, rewards, *_) in zip(actions, steps, strict=True):
            observation, reward, *_ = single.step(action[index])
            assert np.array_equal(observation, seen[index]) and reward == rewards[index]


def test_drawn_worlds_let_a_path_be_chosen() -> None:
    env = gymnasium.make("Ropewalk/Multipath-v0", decides="path", duration_s=1)
    assert env.action_space == Discrete(2)
    play(env, 1, seed=1)
    agents = parallel_env(2, env.unwrapped._keys["paths"], decides="path", duration_s=0.5)
    agents.reset(seed=1)
    agents.step({"flow_0": 1, "flow_1": np.int64(0)})


def test_what_cannot_be_had_is_refused(two: Scenario) -> None:
    with pytest.raises(ConfigError, match="flow: is missing; several flows can learn: download, film"):
        scenario_env(two)
    with pytest.raises(ConfigError, match="did you mean `download`"):
        scenario_env(two, "downlaod")
    with pytest.raises(ConfigError, match="`single` is right"):
        scenario_env(two, "film", decides="path")
    with pytest.raises(ConfigError, match="decides: 'paths' is not a kind of decisions; did you mean 'path'"):
        scenario_env(two, "download", decides="paths")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="unexpected keyword argument 'rivals'"):
        scenario_env(two, "film", rivals={"count": 1})  # type: ignore[call-arg]
    env = scenario_env(two, "download", decides="path")
    env.reset(seed=1)
    for action in (2, -1, [1], 1.0, None):
        with pytest.raises(ActionError):
            env.step(action)  # type: ignore[arg-type]


@pytest.mark.parametrize("decides", ["path", "weights", "packet"])
def test_a_schedulers_policy_is_exported_and_run(two: Scenario, decides: Any, tmp_path: Path) -> None:
    env = scenario_env(two, "download", decides=decides, interval="20ms")
    size = len(env.reset(seed=1)[0])
    file, rng = tmp_path / "policy.onnx", np.random.default_rng(1)
    export_onnx(file, [(rng.standard_normal((size, 2)), np.zeros(2))], at_most=np.full(size, 5), **env.meaning)
    policy = Policy(file)
    observation, _ = env.reset(seed=1)
    actions, truncated = [], False
    while not truncated:
        answer = policy.act(observation)
        actions.append(np.array(answer) if decides == "weights" else int(np.argmax(answer)))
        observation, _, _, truncated, _ = env.step(actions[-1])
    assert len(np.unique(actions)) > 1
    scenario = env.scenario()
    scenario.set("flow.download.scheduler", {"name": "policy", "file": str(file)})
    assert scenario.run(progress=False).digest == env.results().digest


def test_a_wrong_file_of_a_scheduler_is_refused_where_it_is_named(two: Scenario, tmp_path: Path) -> None:
    file = tmp_path / "rate.onnx"
    meaning: dict[str, Any] = {"observation": "orca", "history": 1, "action": "rate", "interval": "rtt", "paths": 2}
    export_onnx(file, [(np.zeros((14, 2)), np.zeros(2))], **meaning)
    two.set("flow.download.scheduler", {"name": "policy", "file": str(file)})
    message = r"`rate` is a congestion control's; name the file in `congestion`(.|\n)*rate.onnx"
    with pytest.raises(ScenarioError, match=message):
        two.run(progress=False)
