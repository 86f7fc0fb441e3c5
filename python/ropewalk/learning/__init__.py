"""Learning: environments for Gymnasium and PettingZoo, and policies as ONNX files.

Importing this package registers `Ropewalk/SinglePath-v0` and `Ropewalk/Multipath-v0`, if gymnasium is installed
(`pip install ropewalk[learning]`). docs/reference/policies.md describes observations, actions and rewards.
"""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING

from .export import export_onnx, metadata
from .worlds import Feature, Keys, PathRanges, Rivals, features, narrow

if TYPE_CHECKING:
    from .parallel import parallel_env

__all__ = [
    "Feature",
    "Keys",
    "PathRanges",
    "Rivals",
    "export_onnx",
    "features",
    "metadata",
    "narrow",
    "parallel_env",
]


def _register() -> None:
    from gymnasium.envs.registration import register, registry

    for name in ("SinglePath", "Multipath"):
        if f"Ropewalk/{name}-v0" not in registry:
            register(
                id=f"Ropewalk/{name}-v0",
                entry_point=f"ropewalk.learning.environments:{name}Env",
                vector_entry_point=f"ropewalk.learning.vector:{name}VectorEnv",
            )


if importlib.util.find_spec("gymnasium") is not None:
    _register()


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def __getattr__(name: str) -> object:
    if name == "parallel_env":  # only it needs pettingzoo
        from .parallel import parallel_env

        return parallel_env
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
