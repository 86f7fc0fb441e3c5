"""What people put on top of environments: wrappers, videos, copies, data sets, autoreset, the interface of SB3.

Stable-Baselines3, TorchRL and RLlib themselves are tried by tests/frameworks.py, because PyTorch is large.
"""

from __future__ import annotations

import copy
import pickle
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

np = pytest.importorskip("numpy")
gymnasium = pytest.importorskip("gymnasium")

from gymnasium.error import ResetNeeded  # noqa: E402
from gymnasium.vector import AutoresetMode  # noqa: E402
from gymnasium.wrappers import vector as vector_wrappers  # noqa: E402

import ropewalk.learning  # noqa: E402
from ropewalk.learning._picture import Picture  # noqa: E402
from ropewalk.learning.environments import MultipathEnv  # noqa: E402
from ropewalk.learning.vector import MultipathVectorEnv, SinglePathVectorEnv  # noqa: E402

SINGLE = "Ropewalk/SinglePath-v0"
SHORT: dict[str, Any] = {"duration_s": 0.5, "rivals": {"count": [0, 1]}}
COPIES: list[Callable[[Any], Any]] = [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))]


def same(one: Any, other: Any) -> bool:
    """Whether two results of a step are the same."""
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(value, other[key]) for key, value in one.items())
    if isinstance(one, tuple):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(np.array_equal(one, other, equal_nan=np.asarray(one).dtype.kind == "f"))


@pytest.mark.parametrize("copied", COPIES)
@pytest.mark.parametrize(
    "make", [lambda: MultipathEnv(duration_s=2), lambda: MultipathVectorEnv(3, threads=2, **SHORT)]
)
def test_a_copy_continues_the_episode_as_its_original(make: Callable[[], Any], copied: Callable[[Any], Any]) -> None:
    env, rng = make(), np.random.default_rng(1)
    env.reset(seed=4)
    for _ in range(15):
        env.step(rng.uniform(-1, 1, env.action_space.shape))
    twin = copied(env)
    for _ in range(20):
        action = rng.uniform(-1, 1, env.action_space.shape)
        assert same(env.step(action), twin.step(action))
    assert same(env.reset(), twin.reset())  # the next episode of the seed, too


@pytest.mark.parametrize("copied", COPIES)
def test_a_copy_repeats_worlds_of_ranges_that_have_changed_since(copied: Callable[[Any], Any]) -> None:
    env = MultipathVectorEnv(2, **SHORT)
    env.reset(seed=1)
    narrow = [{"rate_mbps": 10, "rtt_ms": 20}] * 2
    env.reset(options={"paths": narrow, "reset_mask": np.array([True, False])})
    twin, action = copied(env), np.zeros((2, 2))
    for _ in range(70):  # beyond an end
        one, other = env.step(action), twin.step(action)
        assert same(one, other)
    assert one[4]["capacity_mbps"].tolist() == [20, 20]


def test_an_environment_is_copied_before_its_first_episode_and_after_an_end() -> None:
    env = gymnasium.make(SINGLE, **SHORT)
    twin = pickle.loads(pickle.dumps(env))
    assert same(env.reset(seed=1), twin.reset(seed=1))
    while not env.step([0.0])[3]:
        pass
    with pytest.raises(ResetNeeded):
        copy.deepcopy(env).step([0.0])


def test_several_agents_are_copied() -> None:
    pytest.importorskip("pettingzoo")
    env = ropewalk.learning.parallel_env(2, **SHORT)
    env.reset(seed=1)
    actions = dict.fromkeys(env.agents, np.ones(1, np.float32))
    env.step(actions)
    twin = copy.deepcopy(env)
    assert same(env.step(actions), twin.step(actions))


def test_supersuit_makes_one_vectorised_environment_of_several_agents() -> None:
    supersuit = pytest.importorskip("supersuit")
    agents = supersuit.pettingzoo_env_to_vec_env_v1(ropewalk.learning.parallel_env(2, **SHORT))
    worlds = supersuit.concat_vec_envs_v1(agents, 2, num_cpus=0, base_class="gymnasium")  # copies by pickle
    observations, _ = worlds.reset(seed=1)
    assert observations.shape == worlds.step(np.zeros((4, 1), np.float32))[0].shape == (4, 30)
    pair = ropewalk.learning.scenario_parallel_env("coexistence", ["a", "b"])
    worlds = supersuit.concat_vec_envs_v1(supersuit.pettingzoo_env_to_vec_env_v1(pair), 2, num_cpus=0)
    assert worlds.reset()[0].shape == (4, 30)


@pytest.mark.parametrize("scheduler", [False, True])
def test_minari_records_a_data_set(scheduler: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    minari = pytest.importorskip("minari")
    short = ropewalk.Scenario.load("wifi-lte", set={"duration": "1s"})
    of_scenario = {"scenario": short, "flow": "download", "decides": "path", "interval": "50ms"}
    inner = gymnasium.make("Ropewalk/Scenario-v0", **of_scenario) if scheduler else gymnasium.make(SINGLE, **SHORT)
    env, rewards = minari.DataCollector(inner), []
    env.reset(seed=1)
    truncated = False
    while not truncated:
        _, reward, _, truncated, _ = env.step(env.action_space.sample())
        rewards.append(reward)
    recorded = env.create_dataset("ropewalk/tried-v0")
    assert recorded.total_steps == len(rewards) > 10
    np.testing.assert_array_equal(recorded[0].rewards, rewards)
    assert recorded[0].observations.shape == (len(rewards) + 1, *inner.observation_space.shape)


def test_a_loop_as_in_cleanrl_has_episodes_of_all_steps_but_the_masked_ones() -> None:
    worlds: Any = gymnasium.make_vec(SINGLE, 4, "vector_entry_point", duration_s=1.0, reward="orca")
    worlds = vector_wrappers.RecordEpisodeStatistics(worlds)
    worlds = vector_wrappers.NormalizeReward(vector_wrappers.NormalizeObservation(worlds))
    weights = np.random.default_rng(1).standard_normal((30, 1)) / 30
    observations, _ = worlds.reset(seed=1)
    lengths: list[int] = []
    steps, was_over = np.zeros(4, int), np.zeros(4, bool)
    for _ in range(250):
        observations, rewards, _, truncated, infos = worlds.step(np.tanh(observations @ weights).astype(np.float32))
        assert np.isfinite(observations).all() and np.isfinite(rewards).all()
        steps = np.where(was_over, 0, steps + 1)  # the step after an end resets that world, and has no reward
        if truncated.any():
            assert infos["episode"]["l"][truncated].tolist() == steps[truncated].tolist()
            lengths.extend(steps[truncated])
        was_over = truncated
    # An interval without an event of the flow goes on.
    assert lengths and all(0 < length <= 100 for length in lengths)


def gymnasiums(mode: AutoresetMode) -> Any:
    return gymnasium.make_vec(SINGLE, 3, vectorization_mode="sync", vector_kwargs={"autoreset_mode": mode}, **SHORT)


@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP])
def test_autoreset_is_that_of_gymnasiums_own_vectorisation(mode: AutoresetMode) -> None:
    ours, theirs = SinglePathVectorEnv(3, autoreset_mode=mode, **SHORT), gymnasiums(mode)
    assert (ours.autoreset_mode, ours.metadata["autoreset_mode"]) == (mode, mode)
    ours.reset(seed=3)
    theirs.reset(seed=3)
    ends = 0
    for action in np.random.default_rng(3).uniform(-1, 1, (150, 3, 1)).astype(np.float32):
        one, other = ours.step(action), theirs.step(action)
        assert same(one[:4], other[:4])
        assert ("final_obs" in one[4]) == ("final_obs" in other[4])
        if "final_obs" in one[4]:
            ends += 1
            assert same(one[4]["_final_obs"], other[4]["_final_obs"])
            for index in np.flatnonzero(one[4]["_final_obs"]):
                np.testing.assert_array_equal(one[4]["final_obs"][index], other[4]["final_obs"][index])
                for name in ("time_s", "throughput_mbps"):
                    assert one[4]["final_info"][name][index] == other[4]["final_info"][name][index]
    assert ends == (2 if mode is AutoresetMode.SAME_STEP else 0) or ends > 2


def test_without_autoreset_a_world_waits_for_its_reset() -> None:
    env = SinglePathVectorEnv(2, autoreset_mode="Disabled", **SHORT)
    env.reset(seed=1)
    actions = np.zeros((2, 1))
    while not (ended := env.step(actions)[3]).any():
        pass
    with pytest.raises(ResetNeeded, match="reset these worlds first"):
        env.step(actions)
    env.reset(options={"reset_mask": ended})
    env.step(actions)


def test_gymnasiums_wrappers_work_on_top() -> None:
    env: Any = gymnasium.make(SINGLE, **SHORT)
    for wrapper in (
        gymnasium.wrappers.RecordEpisodeStatistics,
        gymnasium.wrappers.NormalizeObservation,
        gymnasium.wrappers.NormalizeReward,
        lambda env: gymnasium.wrappers.FrameStackObservation(env, 3),
        lambda env: gymnasium.wrappers.TimeLimit(env, 20),
    ):
        env = wrapper(env)
    observation, _ = env.reset(seed=1)
    steps, truncated = 0, False
    while not truncated:
        observation, _, _, truncated, _ = env.step(env.action_space.sample())
        steps += 1
    assert (observation.shape, steps) == ((3, 30), 20)
    worlds: Any = SinglePathVectorEnv(2, autoreset_mode=AutoresetMode.SAME_STEP, **SHORT)
    worlds = vector_wrappers.DictInfoToList(vector_wrappers.RecordEpisodeStatistics(worlds))
    worlds.reset(seed=1)
    ended = np.zeros(2, dtype=bool)
    while not ended.any():
        *_, ended, infos = worlds.step(np.zeros((2, 1), np.float32))
    assert set(infos[int(ended.argmax())]) >= {"episode", "final_obs", "final_info"}


def test_a_picture_shows_rate_rtt_and_window() -> None:
    env = gymnasium.make(SINGLE, render_mode="rgb_array", **SHORT)
    env.reset(seed=1)
    before = env.render()
    for _ in range(30):
        env.step([1.0])
    image = env.render()
    assert (image.shape, image.dtype) == ((240, 320, 3), np.uint8)
    for panel in range(3):  # something has been drawn in each panel, below its title
        area = slice(80 * panel + 16, 80 * panel + 78)
        assert (image[area] != before[area]).any()
    frames = SinglePathVectorEnv(2, render_mode="rgb_array", **SHORT)
    frames.reset(seed=1)
    assert [frame.shape for frame in frames.render()] == [(240, 320, 3)] * 2


def test_a_line_of_the_picture_is_as_high_as_its_value() -> None:
    picture = Picture()
    for step in range(11):
        picture.add(np.array([step, 10 - step, 0, 50, 50, 0, 20, 10.0]))  # falls from the capacity to nothing
    image = picture.draw()
    dark = (image[16:78].astype(int).sum(axis=2) < 3 * 160).argmax(axis=0)
    assert np.all(np.diff(dark[1:-1]) >= 0)
    assert dark[2] < 3 < 55 < dark[-3]


def test_stable_baselines3_gets_what_its_own_vectorisation_gives(monkeypatch: pytest.MonkeyPatch) -> None:
    """By a class with the calls of SB3 2.9's `VecEnv`, unless that is installed."""
    try:
        import stable_baselines3  # noqa: F401
    except ImportError:
        for name, module in stand_ins().items():
            monkeypatch.setitem(sys.modules, name, module)
    from ropewalk.learning.sb3 import make_vec_env

    worlds = make_vec_env(SINGLE, 3, seed=5, **SHORT)
    singles = [gymnasium.make(SINGLE, **SHORT) for _ in range(3)]
    first = np.stack([env.reset(seed=5 + index)[0] for index, env in enumerate(singles)])
    np.testing.assert_array_equal(worlds.reset(), first)
    returns, lengths, ends = np.zeros(3), np.zeros(3), 0
    for action in np.random.default_rng(2).uniform(-1, 1, (120, 3, 1)).astype(np.float32):
        observations, rewards, dones, infos = worlds.step(action)
        for index, env in enumerate(singles):
            observation, reward, _, end, info = env.step(action[index])
            returns[index] += reward
            lengths[index] += 1
            assert (rewards[index], dones[index]) == (reward, end)
            assert infos[index]["time_s"] == info["time_s"]
            if end:
                np.testing.assert_array_equal(infos[index]["terminal_observation"], observation)
                assert infos[index]["TimeLimit.truncated"]
                assert infos[index]["episode"]["r"] == pytest.approx(returns[index])
                assert infos[index]["episode"]["l"] == lengths[index]
                returns[index], lengths[index], ends = 0, 0, ends + 1
                observation, info = env.reset()
                assert same(worlds.reset_infos[index], {key: info[key] for key in info if key != "scenario"})
            np.testing.assert_array_equal(observations[index], observation)
    assert ends >= 3
    assert worlds.get_attr("render_mode") == [None] * 3
    assert worlds.env_method("render", indices=1) == [None]


@pytest.mark.parametrize("mode", ["NextStep", "SameStep"])
def test_infos_of_vectorised_worlds_are_numbers_of_which_tensors_are_made(mode: str) -> None:
    worlds = gymnasium.make_vec(SINGLE, 2, "vector_entry_point", autoreset_mode=mode, **SHORT)
    names = set(worlds.reset(seed=1)[1])
    for _ in range(120):
        infos = worlds.step(np.zeros((2, 1)))[4]
        numbers = {key: value for key, value in infos.items() if "final" not in key}
        assert set(numbers) == names
        assert all(value.dtype in (float, bool) for value in numbers.values())


def stand_ins() -> dict[str, types.ModuleType]:
    """Modules with a `VecEnv` that does what SB3's base class does."""

    class VecEnv:
        def __init__(self, num_envs: int, observation_space: Any, action_space: Any) -> None:
            self.num_envs, self.observation_space, self.action_space = num_envs, observation_space, action_space
            self.reset_infos: list[dict[str, Any]] = [{} for _ in range(num_envs)]
            self._reset_seeds()
            self._reset_options()
            self.render_mode = self.get_attr("render_mode")[0]  # type: ignore[attr-defined]

        def _reset_seeds(self) -> None:
            self._seeds: list[int | None] = [None] * self.num_envs

        def _reset_options(self) -> None:
            self._options: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]

        def seed(self, seed: int | None = None) -> None:
            self._seeds = [seed and seed + index for index in range(self.num_envs)]

        def step(self, actions: Any) -> Any:
            self.step_async(actions)  # type: ignore[attr-defined]
            return self.step_wait()  # type: ignore[attr-defined]

    names = ["stable_baselines3", "stable_baselines3.common", "stable_baselines3.common.vec_env"]
    modules = {name: types.ModuleType(name) for name in names}
    modules[names[-1]].VecEnv = VecEnv  # type: ignore[attr-defined]
    return modules
