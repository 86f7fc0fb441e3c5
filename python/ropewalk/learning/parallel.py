"""The environment of PettingZoo: several learning flows in one world."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
from gymnasium import spaces
from gymnasium.error import ResetNeeded
from numpy.typing import ArrayLike, NDArray
from pettingzoo import ParallelEnv  # type: ignore[import-untyped]

from .._native import MEASURES, Environments
from ..errors import ActionError
from ..results import Results
from ..scenario import Scenario
from ._boundary import RENDER_MODES, actions_of, check_names, count_of, options_of, render_mode_of, seed_of
from ._episode import World
from ._picture import Picture
from .environments import MULTIPATH_KINDS, check_decides, meaning_of, results_of, spaces_of
from .scenarios import Decides, loaded, scenario_keys, with_scenario
from .worlds import SINGLE_PATH, Keys, PathRanges, PolicyKeys, config

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = ["ScenarioParallelEnv", "WorldParallelEnv", "parallel_env", "scenario_parallel_env"]

Array = NDArray[np.float32]


class WorldParallelEnv(ParallelEnv):  # type: ignore[misc]  # untyped
    """Several learning flows, next to others.

    A step advances to the next instant at which an agent has to decide. The others keep their observations, their
    rewards are 0, their next actions are ignored, and their infos say `"decides": False`. It can be copied and pickled:
    the copy repeats the episode under way.
    """

    metadata: dict[str, Any] = {  # noqa: RUF012 (gymnasium declares it so)
        "name": "ropewalk_v0",
        "render_modes": RENDER_MODES,
        "render_fps": 10,
        "is_parallelizable": True,
    }

    _options: tuple[str, ...] = ("paths", "rivals")

    def __init__(self, names: Sequence[str], keys: dict[str, Any], render_mode: str | None) -> None:
        self.render_mode = render_mode_of(render_mode)
        self._keys = keys
        self._native = Environments(config(self._keys), 1, 1)
        self.possible_agents, agents = list(names), len(names)
        self.agents: list[str] = []
        observation_space, action_space = spaces_of(self._native)
        self.observation_spaces = dict.fromkeys(self.possible_agents, observation_space)
        self.action_spaces = dict.fromkeys(self.possible_agents, action_space)
        self._observations = np.zeros((agents, *(observation_space.shape or ())), dtype=np.float32)
        self._actions = np.zeros((agents, *(action_space.shape or ())), dtype=np.float32)
        self._rewards, self._truncated = np.zeros(agents), np.zeros(1, dtype=bool)
        self._measures = np.zeros((agents, len(MEASURES)))
        self._is_seeded = False
        self._picture = Picture()

    @property
    def meaning(self) -> dict[str, Any]:
        """What a policy trained here observes and decides: the arguments of `export_onnx` and `metadata`."""
        return meaning_of(self._native)

    def observation_space(self, agent: str) -> spaces.Space[Any]:
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> spaces.Space[Any]:
        return self.action_spaces[agent]

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Array], dict[str, dict[str, Any]]]:
        """Begins the episode of a seed, or the next one; options `paths` and `rivals` change the worlds from now on."""
        seed = seed_of(seed)
        changes = options_of(options, (*self._options, "options"))  # PettingZoo's checks pass an option of this name
        changes.pop("options", None)
        self._change(changes)
        if seed is None and not self._is_seeded:
            seed = int(np.random.default_rng().integers(2**63))
        self._is_seeded = True
        self.agents = list(self.possible_agents)
        self._native.reset([seed], [True], self._observations, self._measures)
        self._draw()
        return self._by_agent(), self._infos()

    def step(
        self, actions: Mapping[str, ArrayLike]
    ) -> tuple[dict[str, Array], dict[str, float], dict[str, bool], dict[str, bool], dict[str, dict[str, Any]]]:
        """One interval. Raises `ActionError`, and `gymnasium.error.ResetNeeded` before a reset and after the end."""
        if not self.agents:
            raise ResetNeeded("there is no episode under way: call reset")
        self._take(actions)
        self._native.step(self._actions, self._observations, self._rewards, self._truncated, self._measures)
        rewards = dict(zip(self.agents, self._rewards.tolist(), strict=True))
        self._draw()
        truncated = bool(self._truncated[0])
        observations, infos = self._by_agent(), self._infos()
        ends = dict.fromkeys(self.agents, False), dict.fromkeys(self.agents, truncated)
        if truncated:
            self.agents = []
        return observations, rewards, *ends, infos

    def scenario(self) -> Scenario:
        """The present world as a scenario of one run, in which the flows have the world's algorithms, not the policies.

        Raises `gymnasium.error.ResetNeeded` before the first episode, and `ConfigError` for worlds with traces.
        """
        return self._scenario_of(World.present(self._native))

    def results(self) -> Results:
        """The record of the episode, which is over, as results of one run.

        Raises `gymnasium.error.ResetNeeded` before the end of an episode, and `ConfigError` for worlds with traces.
        """
        return results_of(self._native, self.scenario)

    def render(self) -> Any:
        """`ansi`: the last interval, one line of text per agent; `rgb_array`: the episode so far."""
        if self.render_mode == "rgb_array":
            return self._picture.draw()
        return self._native.describe(0) if self.render_mode == "ansi" else None

    def close(self) -> None:
        """Does nothing: there is nothing to close."""

    def _change(self, options: dict[str, Any]) -> None:
        """Changes the worlds from now on."""
        if options:
            keys = {**self._keys, **options}
            self._native.set_config(config(keys))
            self._keys = keys

    def _scenario_of(self, world: World) -> Scenario:
        return world.scenario()

    def _take(self, actions: Mapping[str, ArrayLike]) -> None:
        unknown = [agent for agent in actions if agent not in self.agents]
        if unknown:
            raise ActionError(f"no agent is called {unknown[0]!r}; agents are {', '.join(self.agents)}")
        for index, agent in enumerate(self.agents):
            if agent in actions:
                self._actions[index] = actions_of(actions[agent], self.action_space(agent), f"the action of {agent}")
            elif self._native.awaits(0, index):
                raise ActionError(f"{agent} has no action; it has to decide")

    def _draw(self) -> None:
        if self.render_mode == "rgb_array":
            self._picture.add(self._measures)

    def _by_agent(self) -> dict[str, Array]:
        return {agent: self._observations[index].copy() for index, agent in enumerate(self.possible_agents)}

    def _infos(self) -> dict[str, dict[str, Any]]:
        def info(index: int) -> dict[str, Any]:
            # All keys always, because TorchRL makes a specification of the first infos. What has not been measured is
            # infinite, because PettingZoo's checks compare infos, and NaN is not equal to itself.
            measures = np.nan_to_num(self._measures[index], nan=np.inf).tolist()
            return {"decides": self._native.awaits(0, index), **dict(zip(MEASURES, measures, strict=True))}

        return {agent: info(index) for index, agent in enumerate(self.possible_agents)}


class ScenarioParallelEnv(WorldParallelEnv):
    """Several flows of a scenario learn; everything else is as the scenario says. An agent has the name of its flow.

    `scenario_parallel_env` describes the arguments.
    """

    _options = ("scenario",)

    def __init__(
        self,
        scenario: Scenario | str | PathLike[str],
        flows: Sequence[str],
        *,
        decides: Decides | None = None,
        render_mode: str | None = None,
        **keys: Unpack[PolicyKeys],
    ) -> None:
        self._scenario = loaded(scenario)  # first: an unpickled scenario registers its algorithms
        names = [flows] if isinstance(flows, str) else list(flows)
        super().__init__(names, scenario_keys(self._scenario, names, decides, dict(keys)), render_mode)

    def _scenario_of(self, world: World) -> Scenario:
        return self._scenario._only(world.cell, world.seed)

    def _change(self, options: dict[str, Any]) -> None:
        super()._change(with_scenario(options))
        if options:
            self._scenario = loaded(options["scenario"])


def parallel_env(
    agents: int = 2,
    paths: Sequence[PathRanges] = SINGLE_PATH,
    *,
    decides: Decides = "single",
    render_mode: str | None = None,
    **keys: Unpack[Keys],
) -> WorldParallelEnv:
    """`agents` learning flows in one world.

    decides: `single` (TCP flows over one path), `subflows`, `weights`, `path` or `packet` (MPTCP flows over all paths).
    The other arguments are the keys of `ropewalk.learning.worlds.Keys`; the reward is `sage_friendliness` by default.
    """
    check_names(keys)
    check_decides(decides, ("single", *MULTIPATH_KINDS))
    agents = count_of("agents", agents)
    common = {"decides": decides, "paths": paths, "reward": "sage_friendliness", "agents": agents}
    return WorldParallelEnv([f"flow_{index}" for index in range(agents)], {**common, **keys}, render_mode)


def scenario_parallel_env(
    scenario: Scenario | str | PathLike[str],
    flows: Sequence[str],
    *,
    decides: Decides | None = None,
    render_mode: str | None = None,
    **keys: Unpack[PolicyKeys],
) -> ScenarioParallelEnv:
    """Several learning flows in one scenario, each an agent of its name. They have to have the same number of paths.

    The other arguments are those of `scenario_env`. The option `scenario` of a reset changes the scenario from now on.
    """
    return ScenarioParallelEnv(scenario, flows, decides=decides, render_mode=render_mode, **keys)
