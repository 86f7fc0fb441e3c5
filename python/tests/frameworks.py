"""Tries the environments with current frameworks that need PyTorch. No part of the test suite: PyTorch and
its libraries take some gigabytes.

    pip install 'ropewalk[learning]' stable-baselines3 torchrl supersuit "minari[hdf5]" pillow
    python python/tests/frameworks.py
"""

from __future__ import annotations

from typing import Any

import gymnasium
import minari
import numpy as np
import supersuit
from stable_baselines3 import PPO, SAC
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import SubprocVecEnv, VecNormalize
from torchrl.envs import GymEnv, GymWrapper, PettingZooWrapper, check_env_specs

import ropewalk.learning
from ropewalk.learning import sb3

SINGLE, MULTI = "Ropewalk/SinglePath-v0", "Ropewalk/Multipath-v0"
SHORT: dict[str, Any] = {"duration_s": 1.0, "reward": "orca"}


def stable_baselines3() -> None:
    """Both vectorisations, on and off policy."""
    pictures = make_vec_env(SINGLE, 2)
    pictures.reset()
    assert pictures.render() is not None
    processes = make_vec_env(SINGLE, 2, vec_env_cls=SubprocVecEnv)
    assert processes.reset().shape == (2, 30)
    processes.close()
    model = PPO("MlpPolicy", VecNormalize(sb3.make_vec_env(SINGLE, 8, seed=3, **SHORT)), n_steps=128, batch_size=256)
    episodes = model.learn(4000).ep_info_buffer
    assert episodes is not None
    assert all(0.9 < episode["t"] <= 1 for episode in episodes)
    SAC("MlpPolicy", sb3.make_vec_env(MULTI, 2, seed=3, **SHORT), learning_starts=50).learn(200)


def super_suit() -> None:
    """Several agents as one vectorised environment."""
    agents = supersuit.pettingzoo_env_to_vec_env_v1(ropewalk.learning.parallel_env(2))
    worlds = supersuit.concat_vec_envs_v1(agents, 2, num_cpus=0, base_class="stable_baselines3")
    assert worlds.reset().shape == worlds.step(np.zeros((4, 1)))[0].shape == (4, 30)


def torch_rl() -> None:
    """Single, vectorised, several agents."""
    check_env_specs(GymEnv(SINGLE))
    check_env_specs(PettingZooWrapper(ropewalk.learning.parallel_env(2)))
    for mode in ("SameStep", "Disabled"):
        worlds = gymnasium.make_vec(SINGLE, 4, "vector_entry_point", autoreset_mode=mode, **SHORT)
        assert GymWrapper(worlds).rollout(150, break_when_any_done=False).batch_size == (4, 150)


def recording() -> None:
    """A data set of Minari."""
    env = minari.DataCollector(gymnasium.make(SINGLE, duration_s=0.5))
    env.reset(seed=1)
    while not env.step(env.action_space.sample())[3]:
        pass
    assert env.create_dataset("ropewalk/tried-v0").total_steps > 10
    minari.delete_dataset("ropewalk/tried-v0")


if __name__ == "__main__":  # worker processes import this file
    for part in (stable_baselines3, super_suit, torch_rl, recording):
        part()
        print(f"{part.__name__}: as expected")
