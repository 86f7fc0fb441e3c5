"""The environment of PettingZoo: several learning flows in one world."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray
from pettingzoo import ParallelEnv  # type: ignore[import-untyped]

from .._native import MEASURES, Environments
from .environments import keys_of, spaces_of
from .worlds import SINGLE_PATH, PathRanges, config, with_options

__all__ = ["WorldParallelEnv", "parallel_env"]

Array = NDArray[np.float32]


class WorldParallelEnv(ParallelEnv):  # type: ignore[misc]  # untyped
    """Several learning flows next to classical ones.

    A step advances to the next instant at which an agent has to decide. The others keep their observations, their
    rewards are 0, their next actions are ignored, and their infos say `"decides": False`.
    """

    metadata: dict[str, Any] = {  # noqa: RUF012 (gymnasium declares it so)
        "name": "ropewalk_v0",
        "render_modes": ["ansi"],
        "render_fps": 10,
        "is_parallelizable": True,
    }

    def __init__(self, agents: int, keys: dict[str, Any], render_mode: str | None) -> None:
        self.render_mode = render_mode
        self._keys = {**keys, "learners": agents}
        self._native = Environments(config(**self._keys), 1, 1)
        self.possible_agents = [f"flow_{index}" for index in range(agents)]
        self.agents: list[str] = []
        observation_space, action_space = spaces_of(self._native)
        self.observation_spaces = dict.fromkeys(self.possible_agents, observation_space)
        self.action_spaces = dict.fromkeys(self.possible_agents, action_space)
        self._observations = np.zeros((agents, *(observation_space.shape or ())), dtype=np.float32)
        self._actions = np.zeros((agents, *(action_space.shape or ())), dtype=np.float32)
        self._rewards, self._truncated = np.zeros(agents), np.zeros(1, dtype=bool)
        self._measures = np.zeros((agents, len(MEASURES)))
        self._is_seeded = False

    def observation_space(self, agent: str) -> spaces.Space[Any]:
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> spaces.Space[Any]:
        return self.action_spaces[agent]

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Array], dict[str, dict[str, Any]]]:
        """Begins the episode of a seed, or the next one; options `paths` and `rivals` change the worlds from now on."""
        keys = with_options(self._keys, options)
        if keys is not None:
            self._native.set_config(config(**keys))
            self._keys = keys
        if seed is None and not self._is_seeded:
            seed = int(np.random.default_rng().integers(2**63))
        self._is_seeded = True
        self.agents = list(self.possible_agents)
        self._native.reset([seed], [True], self._observations, self._measures)
        return self._by_agent(), self._infos()

    def step(
        self, actions: dict[str, Array]
    ) -> tuple[dict[str, Array], dict[str, float], dict[str, bool], dict[str, bool], dict[str, dict[str, Any]]]:
        if not self.agents:
            return {}, {}, {}, {}, {}
        for index, agent in enumerate(self.agents):
            self._actions[index] = actions[agent]
        self._native.step(self._actions, self._observations, self._rewards, self._truncated, self._measures)
        rewards = dict(zip(self.agents, self._rewards.tolist(), strict=True))
        truncated = bool(self._truncated[0])
        observations, infos = self._by_agent(), self._infos()
        ends = dict.fromkeys(self.agents, False), dict.fromkeys(self.agents, truncated)
        if truncated:
            self.agents = []
        return observations, rewards, *ends, infos

    def render(self) -> str | None:
        """The last interval, one line per agent, in mode `ansi`."""
        return self._native.describe(0) if self.render_mode == "ansi" else None

    def close(self) -> None:
        """Does nothing: there is nothing to close."""

    def _by_agent(self) -> dict[str, Array]:
        return {agent: self._observations[index].copy() for index, agent in enumerate(self.possible_agents)}

    def _infos(self) -> dict[str, dict[str, Any]]:
        def info(index: int) -> dict[str, Any]:
            measures = dict(zip(MEASURES, self._measures[index].tolist(), strict=True))
            return {"decides": self._native.awaits(0, index), **measures}

        return {agent: info(index) for index, agent in enumerate(self.possible_agents)}


def parallel_env(
    agents: int = 2,
    paths: Sequence[PathRanges] = SINGLE_PATH,
    *,
    decides: str = "single",
    render_mode: str | None = None,
    reward: str | Mapping[str, float] = "sage_friendliness",
    **keys: Any,
) -> WorldParallelEnv:
    """`agents` learning flows in one world.

    decides: `single` (TCP flows over the first path), `subflows` or `weights` (MPTCP flows over all paths). The other
    arguments are those of `ropewalk.learning.environments.keys_of`.
    """
    return WorldParallelEnv(agents, keys_of(decides, paths, reward=reward, **keys), render_mode)
