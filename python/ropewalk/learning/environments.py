"""The environments of Gymnasium: one learning flow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from .._native import MEASURES, Environments
from .worlds import MULTIPATH, SINGLE_PATH, PathRanges, Rivals, config, with_options

__all__ = ["MultipathEnv", "SinglePathEnv", "keys_of", "spaces_of"]

Array = NDArray[np.float32]


def keys_of(
    kind: str,
    paths: Sequence[PathRanges],
    *,
    rivals: Rivals | None = None,
    duration_s: float = 10.0,
    observation: str | Sequence[str] = "aurora",
    history: int | None = None,
    action: str | None = None,
    interval: str = "10ms",
    reward: str | Mapping[str, float] = "aurora",
) -> dict[str, Any]:
    """The keys of a configuration.

    paths, rivals: the ranges from which worlds are drawn.
    duration_s: length of an episode, seconds.
    observation: a preset (`aurora`, `orca`, `sage`) or names of features; history: number of past intervals in it.
    action: `rate_change(delta)`, `rate(min, max)`, `window_change(exponent)` or `cubic_steering(exponent)`.
    interval: time between decisions, `10ms` or `rtt`.
    reward: a preset (`aurora`, `orca`, `sage`, `sage_friendliness`) or weights of features.
    """
    return {
        "kind": kind,
        "paths": list(paths),
        "rivals": rivals,
        "duration_s": duration_s,
        "observation": observation if isinstance(observation, str) else ",".join(observation),
        "history": history,
        "action": action,
        "interval": interval,
        "reward": reward,
    }


def spaces_of(native: Environments) -> tuple[spaces.Space[Any], spaces.Space[Any]]:
    """The spaces of a learner's observations and actions."""
    low = np.array(native.observation_low, dtype=np.float32)
    limit = native.action_limit
    return (
        spaces.Box(low, np.full_like(low, np.inf), dtype=np.float32),
        spaces.Box(-limit, limit, (native.action_size,), np.float32),
    )


class _WorldEnv(gymnasium.Env[Array, Array]):
    """One learning flow in a world that is drawn by the seed of each episode."""

    metadata: dict[str, Any] = {"render_modes": ["ansi"], "render_fps": 10}  # noqa: RUF012 (gymnasium declares it so)

    def __init__(self, keys: dict[str, Any], render_mode: str | None) -> None:
        if render_mode not in (None, *self.metadata["render_modes"]):
            raise ValueError(f"no render mode {render_mode!r}: use None or 'ansi'")
        self.render_mode = render_mode
        self._keys = keys
        self._native = Environments(config(**keys), 1, 1)
        self.observation_space, self.action_space = spaces_of(self._native)
        self._is_seeded = False
        self._rewards, self._truncated = np.zeros(1), np.zeros(1, dtype=bool)
        self._measures = np.zeros(len(MEASURES))

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Array, dict[str, Any]]:
        """Begins the episode of a seed, or the next one; options `paths` and `rivals` change the worlds from now on."""
        super().reset(seed=seed)
        keys = with_options(self._keys, options)
        if keys is not None:
            self._native.set_config(config(**keys))
            self._keys = keys
        if seed is None and not self._is_seeded:
            seed = int(self.np_random.integers(2**63))
        self._is_seeded = True
        observation = np.empty(self.observation_space.shape or (), dtype=np.float32)
        self._native.reset([seed], [True], observation, self._measures)
        self._last = observation
        return observation, self._info()

    def step(self, action: Array) -> tuple[Array, float, bool, bool, dict[str, Any]]:
        observation = self._last.copy()  # an episode's last step may leave it as it is
        actions = np.ascontiguousarray(action, dtype=np.float32)
        self._native.step(actions, observation, self._rewards, self._truncated, self._measures)
        self._last = observation
        return observation, float(self._rewards[0]), False, bool(self._truncated[0]), self._info()

    def render(self) -> str | None:
        """The last interval, a line of text, in mode `ansi`."""
        return self._native.describe(0) if self.render_mode == "ansi" else None

    def _info(self) -> dict[str, Any]:
        return dict(zip(MEASURES, self._measures.tolist(), strict=True))


class SinglePathEnv(_WorldEnv):
    """`Ropewalk/SinglePath-v0`: the rate or the window of one TCP flow. Arguments: those of `keys_of`."""

    def __init__(
        self, paths: Sequence[PathRanges] = SINGLE_PATH, *, render_mode: str | None = None, **keys: Any
    ) -> None:
        super().__init__(keys_of("single", paths, **keys), render_mode)


class MultipathEnv(_WorldEnv):
    """`Ropewalk/Multipath-v0`: the rates or windows of an MPTCP flow's subflows, or their weights in the scheduler.

    decides: `subflows`, or `weights`. The other arguments are those of `keys_of`.
    """

    def __init__(
        self,
        paths: Sequence[PathRanges] = MULTIPATH,
        *,
        decides: str = "subflows",
        render_mode: str | None = None,
        **keys: Any,
    ) -> None:
        super().__init__(keys_of(decides, paths, **keys), render_mode)
