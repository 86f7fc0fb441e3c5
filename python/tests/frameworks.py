"""Tries the environments with current frameworks that need PyTorch. No part of the test suite: PyTorch and
its libraries take some gigabytes.

    cargo xtask test frameworks
    python python/tests/frameworks.py [PART ...]    # in target/python-frameworks, which that has made

Prints a line for each part, with the versions of what it tries. A part whose package is missing is named as
skipped. After a part that fails the others go on.
"""

from __future__ import annotations

import sys
import tempfile
import traceback
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np

import ropewalk
import ropewalk.learning

SINGLE, MULTI, SCENARIO = "Ropewalk/SinglePath-v0", "Ropewalk/Multipath-v0", "Ropewalk/Scenario-v0"
SHORT: dict[str, Any] = {"duration_s": 1.0, "reward": "orca"}
# Wi-Fi and LTE, whose scheduler decides.
SCHEDULED: dict[str, Any] = {
    "scenario": ropewalk.Scenario.load("wifi-lte", set={"duration": "2s"}),
    "flow": "download",
    "interval": "50ms",
    "reward": {"throughput_mbps": 0.02},
}


def stable_baselines3() -> None:
    """Both vectorisations, on and off policy; a scenario's rates, its scheduler by intervals and by packets."""
    from stable_baselines3 import DQN, PPO, SAC
    from stable_baselines3.common.env_util import make_vec_env
    from stable_baselines3.common.vec_env import SubprocVecEnv, VecNormalize

    from ropewalk.learning import sb3

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
    PPO("MlpPolicy", sb3.make_vec_env(SCENARIO, 4, seed=1, **SCHEDULED), n_steps=32, batch_size=64).learn(128)
    for decides in ("path", "packet"):
        worlds = sb3.make_vec_env(SCENARIO, 2, seed=1, decides=decides, **SCHEDULED)
        DQN("MlpPolicy", worlds, learning_starts=20).learn(100)


def recurrent() -> None:
    """A GRU and an LSTM of torch decide as torch and onnxruntime, up to rounding, with a state."""
    for kind, size in (("GRU", 8), ("LSTM", 16)):
        recurrent_as_exported(kind, size)


def super_suit() -> None:
    """Several agents as one vectorised environment, of drawn worlds and of a scenario."""
    import supersuit

    agents = supersuit.pettingzoo_env_to_vec_env_v1(ropewalk.learning.parallel_env(2))
    worlds = supersuit.concat_vec_envs_v1(agents, 2, num_cpus=0, base_class="stable_baselines3")
    assert worlds.reset().shape == worlds.step(np.zeros((4, 1)))[0].shape == (4, 30)
    pair = ropewalk.learning.scenario_parallel_env("coexistence", ["a", "b"])
    agents = supersuit.pettingzoo_env_to_vec_env_v1(pair)
    assert supersuit.concat_vec_envs_v1(agents, 2, num_cpus=0).reset()[0].shape == (4, 30)


def torch_rl() -> None:
    """Single, vectorised, several agents, of drawn worlds and of a scenario."""
    from torchrl.envs import GymEnv, GymWrapper, PettingZooWrapper, check_env_specs

    check_env_specs(GymEnv(SINGLE))
    check_env_specs(PettingZooWrapper(ropewalk.learning.parallel_env(2)))
    check_env_specs(PettingZooWrapper(ropewalk.learning.scenario_parallel_env("coexistence", ["a", "b"])))
    for decides in ("subflows", "path", "packet"):
        check_env_specs(GymWrapper(gymnasium.make(SCENARIO, decides=decides, **SCHEDULED)))
    for mode in ("SameStep", "Disabled"):
        worlds = gymnasium.make_vec(SINGLE, 4, "vector_entry_point", autoreset_mode=mode, **SHORT)
        assert GymWrapper(worlds).rollout(150, break_when_any_done=False).batch_size == (4, 150)


def rllib() -> None:
    """PPO of RLlib: a step of training over a drawn world and over a scheduler's decisions."""
    import ray
    from ray.rllib.algorithms.ppo import PPOConfig

    configuration: Any = PPOConfig

    ray.init(num_cpus=1, include_dashboard=False, log_to_driver=False)
    for name, keys in ((SINGLE, SHORT), (SCENARIO, {"decides": "path", **SCHEDULED, "scenario": "wifi-lte"})):
        ray.tune.register_env(name, lambda _, name=name, keys=keys: gymnasium.make(name, **keys))
        setup = configuration().environment(name).env_runners(num_env_runners=0).training(train_batch_size=200)
        assert setup.build_algo().train()["env_runners"]["num_env_steps_sampled"] >= 200
    ray.shutdown()


def recurrent_as_exported(kind: str, size: int) -> None:
    """Compares a torch network, whose state is a part of its input and output, with its file."""
    import onnxruntime
    import torch

    torch.manual_seed(1)
    cell, head = getattr(torch.nn, kind)(7, 8), torch.nn.Linear(8, 1)
    network = recurrent_network(cell, head)
    meaning: dict[str, Any] = {"observation": "orca", "history": 1, "action": "window_change(1)", "interval": "rtt"}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "recurrent.onnx"
        export(network, 7 + size, ropewalk.learning.metadata(**meaning, state=size), path)
        policy, session = ropewalk.Policy(path), onnxruntime.InferenceSession(path)
    name, state = session.get_inputs()[0].name, np.zeros(size, np.float32)
    of_torch, rng = state, np.random.default_rng(2)
    for _ in range(50):
        observation = rng.uniform(0, 1, 7).astype(np.float32)
        action = policy.act(observation)
        answer = session.run(None, {name: np.concatenate([observation, state])[None]})[0][0]
        with torch.no_grad():
            row = network(torch.from_numpy(np.concatenate([observation, of_torch])[None]))[0].numpy()
        state, of_torch = answer[1:], row[1:]
        # States are at most 1 and gates forget, so that roundings do not grow: some 40 of them in each of a few steps.
        assert np.allclose([answer[0], row[0]], action, rtol=0, atol=200 * np.finfo(np.float32).eps)


def recurrent_network(cell: Any, head: Any) -> Any:
    """A torch module over `observation ++ states` that answers `action ++ states`."""
    import torch

    class Network(torch.nn.Module):  # type: ignore[misc]  # untyped where PyTorch is not installed
        def __init__(self) -> None:
            super().__init__()
            self.cell, self.head = cell, head

        def forward(self, x: Any) -> Any:
            observation, *states = torch.split(x, [7] + [8] * ((x.shape[1] - 7) // 8), dim=1)
            states = [state.unsqueeze(0) for state in states]
            output, last = self.cell(observation.unsqueeze(0), states[0] if len(states) == 1 else tuple(states))
            following = (last,) if len(states) == 1 else last
            return torch.cat([self.head(output[0]), *(state[0] for state in following)], dim=1)

    return Network().eval()


def export(network: Any, inputs: int, metadata: dict[str, str], path: Path) -> None:
    """Writes a torch module as a policy."""
    import onnx
    import torch

    torch.onnx.export(network, (torch.zeros(1, inputs),), str(path), dynamo=False)
    model = onnx.load(path)
    onnx.helper.set_model_props(model, metadata)
    onnx.save(model, path)


# What each part tries, by the names of the packages.
PARTS: dict[str, tuple[Any, tuple[str, ...]]] = {
    "stable_baselines3": (stable_baselines3, ("stable-baselines3", "torch")),
    "super_suit": (super_suit, ("supersuit", "stable-baselines3", "pettingzoo")),
    "torch_rl": (torch_rl, ("torchrl", "pettingzoo")),
    "rllib": (rllib, ("ray", "torch")),
    "recurrent": (recurrent, ("torch", "onnxruntime")),
}


def main(names: list[str]) -> None:
    failed = False
    for name in names or PARTS:
        part, packages = PARTS[name]
        try:
            versions = ", ".join(f"{package} {version(package)}" for package in packages)
        except PackageNotFoundError as error:
            print(f"{name}: skipped, {error.name} is missing")
            continue
        try:
            part()
            print(f"{name}: as expected ({versions})", flush=True)
        except Exception:
            failed = True
            traceback.print_exc()
            print(f"{name}: FAILED", flush=True)
    print(f"parts: tried {len(names or PARTS)}")
    sys.exit(failed)


if __name__ == "__main__":  # worker processes import this file
    main(sys.argv[1:])
