"""The vectorised environments of Gymnasium: many worlds, stepped by threads in Rust without the GIL."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from .._native import MEASURES, Environments
from .environments import keys_of, spaces_of
from .worlds import MULTIPATH, SINGLE_PATH, PathRanges, config, with_options

__all__ = ["MultipathVectorEnv", "SinglePathVectorEnv"]

Array = NDArray[Any]


class _WorldVectorEnv(VectorEnv[Array, Array, Array]):
    """Worlds that are reset by the step after the end of their episodes (`AutoresetMode.NEXT_STEP`)."""

    metadata: dict[str, Any] = {  # noqa: RUF012 (gymnasium declares it so)
        "render_modes": ["ansi"],
        "render_fps": 10,
        "autoreset_mode": AutoresetMode.NEXT_STEP,
    }

    def __init__(self, num_envs: int, keys: dict[str, Any], threads: int | None, render_mode: str | None) -> None:
        if threads is None:
            threads = len(os.sched_getaffinity(0))
        self.num_envs, self.render_mode = num_envs, render_mode
        self._keys = keys
        self._native = Environments(config(**keys), num_envs, threads)
        self.single_observation_space, self.single_action_space = spaces_of(self._native)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._observations = np.zeros((num_envs, *(self.single_observation_space.shape or ())), dtype=np.float32)
        self._measures = np.zeros((num_envs, len(MEASURES)))
        self._is_seeded = False

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Array, dict[str, Any]]:
        """Resets all worlds, or those of the option `reset_mask`; a seed gives world i the seed plus i.

        Options `paths` and `rivals` change the worlds of future episodes.
        """
        options = dict(options or {})
        mask = np.asarray(options.pop("reset_mask", np.ones(self.num_envs, dtype=bool)))
        keys = with_options(self._keys, options)
        if keys is not None:
            self._native.set_config(config(**keys))
            self._keys = keys
        seeds: list[int | None]
        if isinstance(seed, int):
            super().reset(seed=seed)
            seeds = [seed + index for index in range(self.num_envs)]
        elif seed is None and self._is_seeded:
            seeds = [None] * self.num_envs
        elif seed is None:
            seeds = self.np_random.integers(2**63, size=self.num_envs).tolist()
        else:
            seeds = [None if one is None else int(one) for one in seed]
        self._is_seeded = True
        self._observations, self._measures = self._observations.copy(), self._measures.copy()
        self._native.reset(seeds, mask.tolist(), self._observations, self._measures)
        return self._observations, self._infos()

    def step(self, actions: Array) -> tuple[Array, Array, Array, Array, dict[str, Any]]:
        # The caller owns the returned arrays; a world whose last step has no observation keeps the previous one.
        self._observations, self._measures = self._observations.copy(), self._measures.copy()
        rewards, truncated = np.empty(self.num_envs), np.empty(self.num_envs, dtype=bool)
        actions = np.ascontiguousarray(actions, dtype=np.float32)
        self._native.step(actions, self._observations, rewards, truncated, self._measures)
        return self._observations, rewards, np.zeros(self.num_envs, dtype=bool), truncated, self._infos()

    def render(self) -> tuple[str, ...] | None:
        """The last interval of each world, one line of text each, in mode `ansi`."""
        if self.render_mode != "ansi":
            return None
        return tuple(self._native.describe(index) for index in range(self.num_envs))

    @property
    def packet_hops(self) -> int:
        """Packets times links crossed in the current episodes."""
        return self._native.packet_hops

    def _infos(self) -> dict[str, Any]:
        every = np.ones(self.num_envs, dtype=bool)
        infos: dict[str, Any] = {}
        for column, name in enumerate(MEASURES):
            infos[name], infos[f"_{name}"] = self._measures[:, column], every
        return infos


class SinglePathVectorEnv(_WorldVectorEnv):
    """`Ropewalk/SinglePath-v0`, vectorised. `threads`: the maximum number; by default one per core."""

    def __init__(
        self,
        num_envs: int = 1,
        paths: Sequence[PathRanges] = SINGLE_PATH,
        *,
        threads: int | None = None,
        render_mode: str | None = None,
        **keys: Any,
    ) -> None:
        super().__init__(num_envs, keys_of("single", paths, **keys), threads, render_mode)


class MultipathVectorEnv(_WorldVectorEnv):
    """`Ropewalk/Multipath-v0`, vectorised. `threads`: the maximum number; by default one per core."""

    def __init__(
        self,
        num_envs: int = 1,
        paths: Sequence[PathRanges] = MULTIPATH,
        *,
        decides: str = "subflows",
        threads: int | None = None,
        render_mode: str | None = None,
        **keys: Any,
    ) -> None:
        super().__init__(num_envs, keys_of(decides, paths, **keys), threads, render_mode)
