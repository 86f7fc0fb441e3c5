"""Learning: environments for Gymnasium and PettingZoo, and policies as ONNX files.

Importing this package registers `Ropewalk/SinglePath-v0`, `Ropewalk/Multipath-v0`, `Ropewalk/Scenario-v0` and the
tasks of papers in `tasks.py`, if gymnasium is installed (`pip install ropewalk[learning]`). docs/reference/policies.md
describes observations, actions and rewards.
"""

from __future__ import annotations

import importlib
import importlib.util
from typing import TYPE_CHECKING

from .export import export_onnx, metadata
from .tasks import TASKS
from .worlds import Feature, Keys, PathRanges, PolicyKeys, Rivals, features, narrow, packet_features

if TYPE_CHECKING:
    from ._episode import Episode
    from .parallel import parallel_env, scenario_parallel_env
    from .scenarios import scenario_env

__all__ = [
    "TASKS",
    "Episode",
    "Feature",
    "Keys",
    "PathRanges",
    "PolicyKeys",
    "Rivals",
    "export_onnx",
    "features",
    "metadata",
    "narrow",
    "packet_features",
    "parallel_env",
    "scenario_env",
    "scenario_parallel_env",
]

# They need gymnasium, those of several agents also pettingzoo.
_LATER = {
    "Episode": "_episode",
    "parallel_env": "parallel",
    "scenario_env": "scenarios",
    "scenario_parallel_env": "parallel",
}


def _register() -> None:
    from gymnasium.envs.registration import register, registry

    for name, module in (("SinglePath", ""), ("Multipath", ""), ("Scenario", "scenarios")):
        if f"Ropewalk/{name}-v0" not in registry:
            register(
                id=f"Ropewalk/{name}-v0",
                entry_point=f"ropewalk.learning.{module or 'environments'}:{name}Env",
                vector_entry_point=f"ropewalk.learning.{module or 'vector'}:{name}VectorEnv",
            )
    for task in TASKS:
        if f"Ropewalk/{task.name}-v0" not in registry:
            register(
                id=f"Ropewalk/{task.name}-v0",
                entry_point=registry[f"Ropewalk/{task.environment}-v0"].entry_point,
                vector_entry_point=registry[f"Ropewalk/{task.environment}-v0"].vector_entry_point,
                kwargs=task.keys,
            )


if importlib.util.find_spec("gymnasium") is not None:
    _register()


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def __getattr__(name: str) -> object:
    if name in _LATER:
        return getattr(importlib.import_module(f".{_LATER[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
