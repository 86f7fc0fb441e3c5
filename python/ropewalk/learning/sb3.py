"""The vectorised environments for Stable-Baselines3, which has an interface of its own. Needs `stable-baselines3`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode
from numpy.typing import NDArray
from stable_baselines3.common.vec_env import VecEnv

__all__ = ["WorldVecEnv", "make_vec_env"]

Array = NDArray[Any]
Indices = int | Iterable[int] | None


def make_vec_env(
    name: str = "Ropewalk/SinglePath-v0", n_envs: int = 1, *, seed: int | None = None, **keys: Any
) -> WorldVecEnv:
    """`n_envs` worlds of an environment, stepped by threads in Rust. `keys` are those of `gymnasium.make_vec`.

    Infos have `episode`, as SB3's `Monitor` writes it: return, length and seconds of the world.
    """
    keys["autoreset_mode"] = AutoresetMode.SAME_STEP
    worlds = gymnasium.make_vec(name, num_envs=n_envs, vectorization_mode="vector_entry_point", **keys)
    vector = WorldVecEnv(worlds)
    vector.seed(seed)
    return vector


class WorldVecEnv(VecEnv):  # type: ignore[misc]  # untyped where SB3 is not installed
    """Worlds of one vectorised environment. Their observations at an end are `terminal_observation` of the infos."""

    def __init__(self, worlds: gymnasium.vector.VectorEnv[Any, Any, Any]) -> None:
        self.worlds = worlds
        self._actions: Array | None = None
        self._returns, self._lengths = np.zeros(worlds.num_envs), np.zeros(worlds.num_envs, dtype=int)
        super().__init__(worlds.num_envs, worlds.single_observation_space, worlds.single_action_space)

    @property
    def meaning(self) -> dict[str, Any]:
        """What a policy trained here observes and decides: the arguments of `export_onnx` and `metadata`."""
        worlds: Any = self.worlds.unwrapped
        return dict(worlds.meaning)

    def reset(self) -> Array:
        """Resets all worlds, with the seeds of `seed` and the first world's options if there are any."""
        seeds = None if all(seed is None for seed in self._seeds) else self._seeds
        observations, infos = self.worlds.reset(seed=seeds, options=self._options[0])
        self.reset_infos = self._split(infos)
        self._returns[:], self._lengths[:] = 0, 0
        self._reset_seeds()
        self._reset_options()
        return np.asarray(observations)

    def step_async(self, actions: Array) -> None:
        """Keeps the actions for `step_wait`."""
        self._actions = actions

    def step_wait(self) -> tuple[Array, Array, Array, list[dict[str, Any]]]:
        """Steps all worlds."""
        observations, rewards, terminated, truncated, infos = self.worlds.step(self._actions)
        ends = terminated | truncated
        self._returns += rewards
        self._lengths += 1
        split = self._split(infos)
        for index in np.flatnonzero(ends):
            self.reset_infos[index] = split[index]
            final = self._split(infos["final_info"])[index]
            episode = {"r": float(self._returns[index]), "l": int(self._lengths[index]), "t": final["time_s"]}
            split[index] = {
                **final,
                "terminal_observation": infos["final_obs"][index],
                "TimeLimit.truncated": bool(truncated[index] and not terminated[index]),
                "episode": episode,
            }
            self._returns[index], self._lengths[index] = 0, 0
        return observations, rewards, ends, split

    def close(self) -> None:
        """Closes the environment."""
        self.worlds.close()

    def get_attr(self, attr_name: str, indices: Indices = None) -> list[Any]:
        """An attribute of the environment, once per index: all worlds share it."""
        return [getattr(self.worlds, attr_name)] * len(self._chosen(indices))

    def set_attr(self, attr_name: str, value: Any, indices: Indices = None) -> None:
        """Sets an attribute of the environment for all worlds."""
        if len(self._chosen(indices)) != self.num_envs:
            raise NotImplementedError("an attribute belongs to all worlds of the environment")
        setattr(self.worlds, attr_name, value)

    def env_method(self, method_name: str, *args: Any, indices: Indices = None, **kwargs: Any) -> list[Any]:
        """Calls a method of the environment once; its answer, once per index."""
        return [getattr(self.worlds, method_name)(*args, **kwargs)] * len(self._chosen(indices))

    def env_is_wrapped(self, wrapper_class: type[Any], indices: Indices = None) -> list[bool]:
        """Whether infos have `episode`, as with SB3's `Monitor`; no world has another wrapper."""
        return [wrapper_class.__name__ == "Monitor"] * len(self._chosen(indices))

    def get_images(self) -> Sequence[Array | None]:
        """The pictures of all worlds, in mode `rgb_array`."""
        pictures: Any = self.worlds.render()
        return list(pictures or [None] * self.num_envs)

    def _chosen(self, indices: Indices) -> list[int]:
        if indices is None:
            return list(range(self.num_envs))
        return [indices] if isinstance(indices, int) else list(indices)

    def _split(self, infos: dict[str, Any]) -> list[dict[str, Any]]:
        """The infos of each world: what its masks say."""
        names = [name for name in infos if f"_{name}" in infos and not name.startswith("final_")]
        columns = [(name, infos[name].tolist(), infos[f"_{name}"].tolist()) for name in names]
        return [{name: values[i] for name, values, mask in columns if mask[i]} for i in range(self.num_envs)]
