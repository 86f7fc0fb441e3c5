"""Environments whose worlds are the runs of a scenario, in which one flow learns."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal

from gymnasium.vector import AutoresetMode

from ..errors import ConfigError
from ..scenario import Scenario
from ._boundary import check_names, suggestion
from ._episode import World
from .environments import MULTIPATH_KINDS, Array, WorldEnv
from .vector import WorldVectorEnv
from .worlds import PolicyKeys

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = [
    "Decides",
    "ScenarioEnv",
    "ScenarioVectorEnv",
    "loaded",
    "scenario_env",
    "scenario_keys",
    "with_scenario",
]

Decides = Literal["single", "subflows", "weights", "path", "packet"]
_KINDS = ("single", *MULTIPATH_KINDS)
_NAMES = tuple(PolicyKeys.__annotations__)


def scenario_keys(
    scenario: Scenario, flows: Sequence[str] | None, decides: str | None, keys: dict[str, Any]
) -> dict[str, Any]:
    """The configuration of the native environments."""
    check_names(keys, _NAMES)
    if decides not in (None, *_KINDS):
        raise ConfigError(f"decides: {decides!r} is not a kind of decisions; {suggestion(decides, _KINDS)}")
    return {"scenario": scenario._parts(), "flow": flows, "decides": decides, **keys}


def _only(flow: str | None) -> list[str] | None:
    return None if flow is None else [flow]


def loaded(scenario: Scenario | str | PathLike[str]) -> Scenario:
    return scenario if isinstance(scenario, Scenario) else Scenario.load(scenario)


def with_scenario(options: dict[str, Any]) -> dict[str, Any]:
    """Options with the scenario as the native environments take it."""
    return {name: loaded(option)._parts() for name, option in options.items()}


class ScenarioEnv(WorldEnv):
    """`Ropewalk/Scenario-v0`: one flow of a scenario learns; everything else is as the scenario says.

    `ropewalk.learning.scenario_env` describes the arguments.
    """

    _options = ("scenario",)

    def __init__(
        self,
        scenario: Scenario | str | PathLike[str],
        flow: str | None = None,
        *,
        decides: Decides | None = None,
        render_mode: str | None = None,
        **keys: Unpack[PolicyKeys],
    ) -> None:
        self._scenario = loaded(scenario)  # first: an unpickled scenario registers its algorithms
        super().__init__(scenario_keys(self._scenario, _only(flow), decides, dict(keys)), render_mode)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Array, dict[str, Any]]:
        """Begins the run of a seed, or the next one. The seed also draws the cell, if the scenario has several.

        The info has the `scenario` of this one run in TOML. The option `scenario` changes the scenario from now on.
        """
        return super().reset(seed=seed, options=options)

    def _text(self) -> str | None:
        return self.scenario().to_toml()

    def _scenario_of(self, world: World, name: str | None = None) -> Scenario:
        scenario = self._scenario._only(world.cell, world.seed)
        if name is not None:
            key = "congestion" if self._native.decides in ("single", "subflows") else "scheduler"
            scenario.set(f"flow.{self._native.flows[0]}.{key}", name)
        return scenario

    def _change(self, options: dict[str, Any]) -> None:
        super()._change(with_scenario(options))
        if options:
            self._scenario = loaded(options["scenario"])


class ScenarioVectorEnv(WorldVectorEnv):
    """`Ropewalk/Scenario-v0`, vectorised. `threads`: the maximum number; by default one per core.

    Algorithms that were registered by Python run one at a time.
    """

    _options = ("scenario",)

    def __init__(
        self,
        num_envs: int = 1,
        scenario: Scenario | str | PathLike[str] = "one-link",
        flow: str | None = None,
        *,
        decides: Decides | None = None,
        threads: int | None = None,
        render_mode: str | None = None,
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
        **keys: Unpack[PolicyKeys],
    ) -> None:
        self._scenario = loaded(scenario)
        configured = scenario_keys(self._scenario, _only(flow), decides, dict(keys))
        super().__init__(num_envs, configured, threads, render_mode, autoreset_mode)

    def _scenario_of(self, world: World) -> Scenario:
        return self._scenario._only(world.cell, world.seed)

    def _change(self, options: dict[str, Any]) -> None:
        super()._change(with_scenario(options))
        if options:
            self._scenario = loaded(options["scenario"])


def scenario_env(
    scenario: Scenario | str | PathLike[str],
    flow: str | None = None,
    *,
    decides: Decides | None = None,
    render_mode: str | None = None,
    **keys: Unpack[PolicyKeys],
) -> ScenarioEnv:
    """An environment whose worlds are the runs of a scenario: `reset(seed=...)` begins the run of that seed.

    scenario: a `Scenario`, a file, or the name of a built-in one. The seed draws one of its cells.
    flow: the flow that learns; needed if several can.
    decides: what an action changes. `single`: rate or window of a flow over one path. `subflows`: that of each path of
        an MPTCP or multipath QUIC flow. `weights`: the weights of its paths in the scheduler `weighted`. `path`: the
        path of the packets of an interval, a number from 0. `packet`: the path of one packet. By default rates or
        windows.
    keys: observation, history, action, interval and reward, as of the other environments.

    Raises `ConfigError` for what cannot be had; the message names the key and what would be right.
    """
    return ScenarioEnv(scenario, flow, decides=decides, render_mode=render_mode, **keys)
