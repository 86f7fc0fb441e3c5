"""Episodes with a classical algorithm in the place of the policy."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from gymnasium.error import ResetNeeded
from numpy.typing import NDArray

from .._native import MEASURES, Environments, Record
from ..errors import ConfigError
from ..results import Results
from ..scenario import Scenario

if TYPE_CHECKING:
    from .._native import _World

__all__ = ["Episode", "World"]


class World(NamedTuple):
    """The world of an episode."""

    seed: int
    cell: dict[str, str]
    text: str | None

    @staticmethod
    def of(world: _World) -> World:
        """As the native environments give it."""
        return World(world[0], dict(world[1]), world[2])

    @staticmethod
    def present(native: Environments, index: int = 0) -> World:
        """That of an environment's episode."""
        world = native.world(index)
        if world is None:
            raise ResetNeeded("there is no world yet: call reset")
        return World.of(world)

    def scenario(self) -> Scenario:
        """A drawn world as a scenario of one run."""
        if self.text is None:
            raise ConfigError("traces: a world with traces has no text; write a scenario that names their files")
        return Scenario.parse(self.text)


class Episode:
    """An episode with a classical algorithm, measured as an environment measures a policy."""

    seed: int
    """The seed of the run."""
    cell: dict[str, str]
    """The swept keys and shown values of the scenario's cell."""
    rewards: NDArray[np.float64]
    """The reward of each step."""
    infos: dict[str, NDArray[np.float64]]
    """The measures of each step by name, as in the infos of `step`; NaN where there is none yet."""

    def __init__(
        self,
        measured: tuple[list[float], list[float], _World, Record],
        scenario_of: Callable[[World], Scenario],
    ) -> None:
        """Use `baseline` of an environment."""
        rewards, measures, world, self._record = measured
        self._world, self._scenario_of = World.of(world), scenario_of
        self.seed, self.cell = self._world.seed, self._world.cell
        self.rewards = np.array(rewards)
        columns = np.array(measures).reshape(-1, len(MEASURES)).T
        self.infos = dict(zip(MEASURES, columns, strict=True))

    @property
    def total(self) -> float:
        """The sum of the rewards: what a policy's return in this world is to be compared with."""
        return math.fsum(self.rewards)

    @cached_property
    def results(self) -> Results:
        """The record as results of one run, with its tables and figures."""
        return Results(self._record.results(self._scenario_of(self._world)._resolved))

    def __repr__(self) -> str:
        return f"<ropewalk.learning.Episode: {len(self.rewards)} steps, {self.total:.6g} in all>"
