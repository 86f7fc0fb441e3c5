"""The vectorised environments of Gymnasium: many worlds, stepped by threads in Rust without the GIL."""

from __future__ import annotations

import os
from collections.abc import Sequence
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np
from gymnasium.error import ResetNeeded
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from .._native import MEASURES, Environments
from ..scenario import Scenario
from ._boundary import RENDER_MODES, actions_of, check_names, count_of, options_of, render_mode_of, seed_of
from ._episode import World
from ._picture import Picture
from .environments import MULTIPATH_KINDS, Multipath, check_decides, meaning_of, spaces_of
from .worlds import MULTIPATH, SINGLE_PATH, Keys, PathRanges, config

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = ["MultipathVectorEnv", "SinglePathVectorEnv", "WorldVectorEnv"]

Array = NDArray[Any]


class WorldVectorEnv(VectorEnv[Array, Array, Array]):
    """Worlds whose episodes end each at its time.

    `autoreset_mode` says what follows an end. NEXT_STEP: the next step resets the world. SAME_STEP: the same step does,
    and `infos` have `final_obs` and `final_info`. DISABLED: the caller does, by the option `reset_mask` of `reset`.
    They can be copied and pickled: the copies repeat the episodes under way.
    """

    metadata: dict[str, Any] = {  # noqa: RUF012 (gymnasium declares it so)
        "render_modes": RENDER_MODES,
        "render_fps": 10,
        "autoreset_mode": AutoresetMode.NEXT_STEP,
    }
    _options: tuple[str, ...] = ("paths", "rivals")

    def __init__(
        self,
        num_envs: int,
        keys: dict[str, Any],
        threads: int | None,
        render_mode: str | None,
        autoreset_mode: AutoresetMode | str,
    ) -> None:
        threads = len(os.sched_getaffinity(0)) if threads is None else count_of("threads", threads)
        self.num_envs, self.render_mode = count_of("num_envs", num_envs), render_mode_of(render_mode)
        self.autoreset_mode = AutoresetMode(autoreset_mode)
        self.metadata = {**self.metadata, "autoreset_mode": self.autoreset_mode}
        self._keys = keys
        self._native = Environments(config(keys), self.num_envs, threads)
        self.single_observation_space, self.single_action_space = spaces_of(self._native)
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        self._observations = np.zeros((self.num_envs, *(self.single_observation_space.shape or ())), dtype=np.float32)
        self._measures = np.zeros((self.num_envs, len(MEASURES)))
        self._needs_reset = np.ones(self.num_envs, dtype=bool)
        self._is_seeded = False
        self._pictures = [Picture() for _ in range(self.num_envs)]

    @property
    def meaning(self) -> dict[str, Any]:
        """What a policy trained here observes and decides: the arguments of `export_onnx` and `metadata`."""
        return meaning_of(self._native)

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Array, dict[str, Any]]:
        """Resets all worlds, or those of the option `reset_mask`; a seed gives world i the seed plus i.

        Options `paths` and `rivals` change the worlds of future episodes.
        """
        options = options_of(options, (*self._options, "reset_mask"))
        mask = np.asarray(options.pop("reset_mask", np.ones(self.num_envs, dtype=bool)))
        if mask.dtype != bool or mask.shape != (self.num_envs,):
            raise ValueError(f"reset_mask: {self.num_envs} truth values are expected")
        seeds = self._seeds(seed)
        self._change(options)
        self._is_seeded = True
        self._needs_reset &= ~mask
        self._observations, self._measures = self._observations.copy(), self._measures.copy()
        self._native.reset(seeds, mask.tolist(), self._observations, self._measures)
        self._draw()
        return self._observations, self._infos(self._measures)

    def step(self, actions: Array) -> tuple[Array, Array, Array, Array, dict[str, Any]]:
        """One interval of each world. Raises `ActionError`, and `gymnasium.error.ResetNeeded`."""
        if self._needs_reset.any():
            raise ResetNeeded(f"reset these worlds first: {', '.join(map(str, np.flatnonzero(self._needs_reset)))}")
        actions = actions_of(actions, self.action_space, "the array of actions")
        # The caller owns the returned arrays; a world whose last step has no observation keeps the previous one.
        self._observations, self._measures = self._observations.copy(), self._measures.copy()
        rewards, truncated = np.empty(self.num_envs), np.empty(self.num_envs, dtype=bool)
        self._native.step(actions, self._observations, rewards, truncated, self._measures)
        self._draw()
        final: dict[str, Any] = {}
        if truncated.any() and self.autoreset_mode is AutoresetMode.SAME_STEP:
            final = self._finals(truncated)
            self._native.reset([None] * self.num_envs, truncated.tolist(), self._observations, self._measures)
            self._draw()
        elif self.autoreset_mode is AutoresetMode.DISABLED:
            self._needs_reset |= truncated
        infos = {**self._infos(self._measures), **final}
        return self._observations, rewards, np.zeros(self.num_envs, dtype=bool), truncated, infos

    def render(self) -> Any:
        """`ansi`: the last interval of each world, one line of text each; `rgb_array`: the episodes so far."""
        if self.render_mode == "rgb_array":
            return tuple(picture.draw() for picture in self._pictures)
        if self.render_mode != "ansi":
            return None
        return tuple(self._native.describe(index) for index in range(self.num_envs))

    def scenario(self, index: int) -> Scenario:
        """The present world of an index as a scenario of one run, in which the flow has the world's algorithms.

        Raises `gymnasium.error.ResetNeeded` before the first episode, and `ConfigError` for worlds with traces.
        """
        return self._scenario_of(World.present(self._native, index))

    @property
    def packet_hops(self) -> int:
        """Packets times links crossed in the current episodes."""
        return self._native.packet_hops

    def _seeds(self, seed: int | Sequence[int | None] | None) -> list[int | None]:
        if isinstance(seed, (int, Integral)):
            first = int(seed_of(seed) or 0)
            super().reset(seed=first)
            return [seed_of(first + index) for index in range(self.num_envs)]
        if seed is not None:
            seeds = [seed_of(one) for one in seed]
            if len(seeds) != self.num_envs:
                raise ValueError(f"seed: {len(seeds)} seeds for {self.num_envs} worlds")
            return seeds
        if self._is_seeded:
            return [None] * self.num_envs
        drawn: list[int | None] = self.np_random.integers(2**63, size=self.num_envs).tolist()
        return drawn

    def _scenario_of(self, world: World) -> Scenario:
        return world.scenario()

    def _change(self, options: dict[str, Any]) -> None:
        """Changes the worlds from now on."""
        if options:
            keys = {**self._keys, **options}
            self._native.set_config(config(keys))
            self._keys = keys

    def _draw(self) -> None:
        if self.render_mode == "rgb_array":
            for picture, measures in zip(self._pictures, self._measures, strict=True):
                picture.add(measures)

    def _finals(self, mask: Array) -> dict[str, Any]:
        """The infos of episodes that are over: their last observation and info."""
        observations = np.full(self.num_envs, None, dtype=object)
        for index in np.flatnonzero(mask):
            observations[index] = self._observations[index].copy()
        info = self._infos(np.where(mask[:, None], self._measures, np.nan))
        return {"final_obs": observations, "_final_obs": mask.copy(), "final_info": info, "_final_info": mask.copy()}

    @staticmethod
    def _infos(measures: Array) -> dict[str, Any]:
        infos: dict[str, Any] = {}
        for name, column in zip(MEASURES, measures.copy().T, strict=True):
            infos[name], infos[f"_{name}"] = column, ~np.isnan(column)
        return infos


class SinglePathVectorEnv(WorldVectorEnv):
    """`Ropewalk/SinglePath-v0`, vectorised. `threads`: the maximum number; by default one per core."""

    def __init__(
        self,
        num_envs: int = 1,
        paths: Sequence[PathRanges] = SINGLE_PATH,
        *,
        threads: int | None = None,
        render_mode: str | None = None,
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
        **keys: Unpack[Keys],
    ) -> None:
        check_names(keys)
        super().__init__(num_envs, {"decides": "single", "paths": paths, **keys}, threads, render_mode, autoreset_mode)


class MultipathVectorEnv(WorldVectorEnv):
    """`Ropewalk/Multipath-v0`, vectorised. `threads`: the maximum number; by default one per core."""

    def __init__(
        self,
        num_envs: int = 1,
        paths: Sequence[PathRanges] = MULTIPATH,
        *,
        decides: Multipath = "subflows",
        threads: int | None = None,
        render_mode: str | None = None,
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
        **keys: Unpack[Keys],
    ) -> None:
        check_names(keys)
        check_decides(decides, MULTIPATH_KINDS)
        super().__init__(num_envs, {"decides": decides, "paths": paths, **keys}, threads, render_mode, autoreset_mode)
