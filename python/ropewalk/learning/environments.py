"""The environments of Gymnasium: one learning flow."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.error import ResetNeeded
from numpy.typing import ArrayLike, NDArray

from .._native import MEASURES, Environments
from ..errors import ConfigError
from ..results import Results
from ..scenario import Scenario
from ._boundary import RENDER_MODES, actions_of, check_names, options_of, render_mode_of, seed_of, suggestion
from ._episode import Episode, World
from ._picture import Picture
from .worlds import MULTIPATH, SINGLE_PATH, Keys, PathRanges, config

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = [
    "MULTIPATH_KINDS",
    "Array",
    "MultipathEnv",
    "SinglePathEnv",
    "WorldEnv",
    "check_decides",
    "meaning_of",
    "results_of",
    "spaces_of",
]

Array = NDArray[np.float32]
Multipath = Literal["subflows", "weights", "path", "packet"]
MULTIPATH_KINDS = ("subflows", "weights", "path", "packet")


def check_decides(decides: str, known: Sequence[str]) -> None:
    """Checks that an environment has this kind of decisions."""
    if decides not in known:
        raise ConfigError(f"decides: {decides!r} is not a kind of decisions; {suggestion(decides, known)}")


def spaces_of(native: Environments) -> tuple[spaces.Space[Any], spaces.Space[Any]]:
    """The spaces of a learner's observations and actions."""
    low, high = np.array(native.observation_range, dtype=np.float32).T
    limit = native.action_limit
    observations = spaces.Box(low, high, dtype=np.float32)
    if native.decides in ("path", "packet"):
        return observations, spaces.Discrete(int(limit) + 1)
    return observations, spaces.Box(-limit, limit, (native.action_size,), np.float32)


def meaning_of(native: Environments) -> dict[str, Any]:
    """What a policy observes and decides, as `export_onnx(**meaning)` takes it."""
    return dict(zip(("observation", "history", "action", "interval", "paths"), native.meaning, strict=True))


def results_of(native: Environments, scenario: Callable[[], Scenario]) -> Results:
    """The record of an episode that is over, as results of the scenario of this one run."""
    record = native.record(0)
    if record is None:
        raise ResetNeeded("the episode is not over: its record follows its end")
    return Results(record.results(scenario()._resolved))


def info_of(measures: NDArray[np.float64]) -> dict[str, float]:
    """The measures of a learner by name, without those that have not been measured yet."""
    return {name: value for name, value in zip(MEASURES, measures.tolist(), strict=True) if value == value}


class WorldEnv(gymnasium.Env[Array, Any]):
    """One learning flow in a world that is drawn by the seed of each episode.

    It can be copied and pickled: the copy repeats the episode under way, with its actions, up to the same step.
    """

    metadata: dict[str, Any] = {"render_modes": RENDER_MODES, "render_fps": 10}  # noqa: RUF012 (gymnasium declares it so)
    _options: tuple[str, ...] = ("paths", "rivals")

    def __init__(self, keys: dict[str, Any], render_mode: str | None) -> None:
        self.render_mode = render_mode_of(render_mode)
        self._keys = keys
        self._native = Environments(config(keys), 1, 1)
        self.observation_space, self.action_space = spaces_of(self._native)
        self._is_seeded = False
        self._needs_reset: str | None = "the first step comes after a reset"
        self._rewards, self._truncated = np.zeros(1), np.zeros(1, dtype=bool)
        self._measures = np.zeros(len(MEASURES))
        self._picture = Picture()

    @property
    def meaning(self) -> dict[str, Any]:
        """What a policy trained here observes and decides: the arguments of `export_onnx` and `metadata`."""
        return meaning_of(self._native)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Array, dict[str, Any]]:
        """Begins the episode of a seed, or the next one; options `paths` and `rivals` change the worlds from now on.

        The info has the world as a `scenario` of one run in TOML, or None with traces.
        """
        seed = seed_of(seed)
        super().reset(seed=seed)
        self._change(options_of(options, self._options))
        if seed is None and not self._is_seeded:
            seed = int(self.np_random.integers(2**63))
        self._is_seeded, self._needs_reset = True, None
        observation = np.empty(self.observation_space.shape or (), dtype=np.float32)
        self._native.reset([seed], [True], observation, self._measures)
        observation, info = self._seen(observation)
        return observation, {**info, "scenario": self._text()}

    def step(self, action: ArrayLike) -> tuple[Array, float, bool, bool, dict[str, Any]]:
        """One interval. Raises `ActionError`, and `gymnasium.error.ResetNeeded` before a reset and after the end."""
        if self._needs_reset is not None:
            raise ResetNeeded(self._needs_reset)
        actions = actions_of(action, self.action_space)
        observation = self._last.copy()  # an episode's last step may leave it as it is
        self._native.step(actions, observation, self._rewards, self._truncated, self._measures)
        truncated = bool(self._truncated[0])
        if truncated:
            self._needs_reset = "the episode is over: call reset"
        observation, info = self._seen(observation)
        return observation, float(self._rewards[0]), False, truncated, info

    def render(self) -> Any:
        """`ansi`: the last interval, a line of text; `rgb_array`: the episode so far."""
        if self.render_mode == "rgb_array":
            return self._picture.draw()
        return self._native.describe(0) if self.render_mode == "ansi" else None

    def baseline(self, name: str | None = None, *, seed: int | None = None) -> Episode:
        """The episode of a seed with a classical algorithm instead of the policy; by default that of the present world.

        name: a congestion control, or a scheduler where the actions are a scheduler's; by default what the world gives
            the flow. The rewards are those of the environment, interval by interval. The episode under way stays.
        """
        measured = self._native.baseline(0, name, seed_of(seed))
        return Episode(measured, lambda world: self._scenario_of(world, name))

    def scenario(self) -> Scenario:
        """The present world as a scenario of one run, in which the flow has the world's algorithms, not the policy.

        Raises `gymnasium.error.ResetNeeded` before the first episode, and `ConfigError` for worlds with traces.
        """
        return self._scenario_of(self._world(), None)

    def results(self) -> Results:
        """The record of the episode, which is over, as results of one run.

        They name the algorithm on which the actions build: CUBIC, or the schedulers `weighted` and `fixed`. Raises
        `gymnasium.error.ResetNeeded` before the end of an episode, and `ConfigError` for worlds with traces.
        """
        return results_of(self._native, self.scenario)

    def _text(self) -> str | None:
        """The text of the present world as a scenario."""
        return self._world().text

    def _world(self) -> World:
        return World.present(self._native)

    def _scenario_of(self, world: World, name: str | None) -> Scenario:
        """The scenario of one run, in which an algorithm has this name."""
        return world.scenario()  # the text of a drawn world has the algorithm

    def _change(self, options: dict[str, Any]) -> None:
        """Changes the worlds from now on."""
        if options:
            keys = {**self._keys, **options}
            self._native.set_config(config(keys))
            self._keys = keys

    def _seen(self, observation: Array) -> tuple[Array, dict[str, Any]]:
        self._last = observation
        if self.render_mode == "rgb_array":
            self._picture.add(self._measures)
        return observation, info_of(self._measures)


class SinglePathEnv(WorldEnv):
    """`Ropewalk/SinglePath-v0`: the rate or the window of one TCP flow over one path.

    The other arguments are the keys of `ropewalk.learning.worlds.Keys`.
    """

    def __init__(
        self, paths: Sequence[PathRanges] = SINGLE_PATH, *, render_mode: str | None = None, **keys: Unpack[Keys]
    ) -> None:
        check_names(keys)
        super().__init__({"decides": "single", "paths": paths, **keys}, render_mode)


class MultipathEnv(WorldEnv):
    """`Ropewalk/Multipath-v0`: the rates or windows of an MPTCP flow's subflows, or what its scheduler does.

    decides: `subflows`, `weights`, `path` or `packet`. The other arguments are the keys of
    `ropewalk.learning.worlds.Keys`.
    """

    def __init__(
        self,
        paths: Sequence[PathRanges] = MULTIPATH,
        *,
        decides: Multipath = "subflows",
        render_mode: str | None = None,
        **keys: Unpack[Keys],
    ) -> None:
        check_names(keys)
        check_decides(decides, MULTIPATH_KINDS)
        super().__init__({"decides": decides, "paths": paths, **keys}, render_mode)
