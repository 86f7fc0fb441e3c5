"""Trains a policy for each task of `ropewalk.learning.TASKS`, and compares it with classical algorithms in new worlds.

    python python/benchmarks/tasks.py train Aurora Aurora-1.onnx --seed 1
    python python/benchmarks/tasks.py table --policies .

The trainer is the PPO of python/examples/ppo.py. A path is chosen by the sign of its policy's number. The table prints
Markdown: for each task medians over worlds that training did not draw, and of the policies (TASK-SEED.onnx) median
and range. A task without a file in the folder of policies has classical algorithms only; without
`--policies` the policies are those in the tree.
Needs `ropewalk[learning]`; training also `jax` and `optax`.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np

import ropewalk
import ropewalk.learning

ROOT = Path(__file__).parents[2]
# Seeds of training begin with 1; these are far away from them.
FIRST_SEED = 500_000_000
# The typical size of a reward, by which it is divided.
SCALES = {"Aurora": 1e-3, "Orca": 1.0, "PathScheduling": 0.1}
ALGORITHMS = ["cubic", "bbr3", "copa", "discern"]
SCHEDULERS = ["minrtt", "blest", "ecf", "daps", "earliest", "stms-like", "roundrobin"]
# What a scheduler's policy sees, scaled to about 1: numbers of a path, and of the connection.
PATH_SCALE = np.array([1, 1, 0.01, 0.02, 0.02, 0.02, 0.02, 0.05], np.float32)
CONNECTION_SCALE = np.array([0.01, 0.001, 0.01], np.float32)
SCALE = np.concatenate([PATH_SCALE, PATH_SCALE, CONNECTION_SCALE])
# The greatest number that it sees, after scaling.
MOST = 10


class Chosen(gymnasium.vector.VectorWrapper):
    """Worlds whose path is the sign of a number, with observations of about 1."""

    def __init__(self, env: Any) -> None:
        super().__init__(env)
        self.single_action_space = gymnasium.spaces.Box(-1, 1, (1,), np.float32)
        shape = env.single_observation_space.shape
        self.single_observation_space = gymnasium.spaces.Box(-np.inf, np.inf, shape, np.float32)

    def reset(self, **keys: Any) -> Any:
        observations, infos = self.env.reset(**keys)
        return scaled(observations), infos

    def step(self, actions: Any) -> Any:
        observations, *rest = self.env.step((actions[:, 0] > 0).astype(int))
        return scaled(observations), *rest


def scaled(observations: Any) -> Any:
    return np.clip(observations * SCALE, 0, MOST).astype(np.float32)


def train(name: str, path: str, steps: int, count: int, seed: int) -> None:
    """Trains a policy and writes it as ONNX."""
    sys.path.insert(0, str(ROOT / "python/examples"))
    import ppo

    ppo.REWARD_SCALE = SCALES[name]
    mode = gymnasium.VectorizeMode.VECTOR_ENTRY_POINT
    worlds = gymnasium.make_vec(f"Ropewalk/{name}-v0", count, mode)
    decides = Chosen(worlds) if name == "PathScheduling" else worlds
    began = time.process_time()
    parameters, normalizer = ppo.train(decides, steps, seed)
    print(f"{(time.process_time() - began) / 60:.1f} CPU minutes")
    layers = [(np.asarray(weights), np.asarray(bias)) for weights, bias in parameters["actor"]]
    normal = {"mean": normalizer.mean, "deviation": normalizer.deviation, "clip": ppo.LIMIT}
    if name == "PathScheduling":
        layers[-1] = for_each_path(*layers[-1])
        # As `scaled`, of numbers that are not negative.
        normal |= {"at_most": MOST / SCALE, "mean": normalizer.mean / SCALE, "deviation": normalizer.deviation / SCALE}
    ropewalk.learning.export_onnx(path, layers, **worlds.unwrapped.meaning, **normal)


def for_each_path(weights: Any, bias: Any) -> tuple[Any, Any]:
    """The last layer for two paths, whose numbers are 0 and the one whose sign chooses."""
    return np.hstack([np.zeros_like(weights), weights]), np.concatenate([np.zeros_like(bias), bias])


def play(env: Any, act: Callable[[Any], Any], seed: int) -> dict[str, Any]:
    """An episode: its rewards, and its measures by name."""
    observation, _ = env.reset(seed=seed)
    rewards, infos, truncated = [], [], False
    while not truncated:
        observation, reward, _, truncated, info = env.step(act(observation))
        rewards.append(reward)
        infos.append(info)
    names = ("throughput_mbps", "rtt_ms", "min_rtt_ms", "loss_ratio", "capacity_mbps", "time_s")
    measures = {key: np.array([info.get(key, np.nan) for info in infos]) for key in names}
    return {"rewards": np.array(rewards), **measures}


def measured(episode: dict[str, Any]) -> list[float]:
    """Reward per step, share of the capacity, RTT over the minimum RTT, share of packets lost."""
    spans = np.diff(episode["time_s"], prepend=0)

    def mean(values: Any) -> float:
        return float(np.nansum(values * spans) / spans.sum())

    share = mean(episode["throughput_mbps"]) / episode["capacity_mbps"][-1]
    ratio = mean(episode["rtt_ms"]) / np.nanmin(episode["min_rtt_ms"])
    return [float(episode["rewards"].mean()), share, ratio, 100 * mean(episode["loss_ratio"])]


def trained(folder: Path, name: str) -> list[ropewalk.Policy]:
    """The policies of a task, one per seed of training."""
    return [ropewalk.Policy(file) for file in sorted(folder.glob(f"{name}-*.onnx"))]


def of_policies(rows: Any, formats: list[str]) -> str:
    """The row of a table for policies: in each column the only one's number, or median and range."""
    if len(rows) == 1:
        cells = [f"{number:{form}}" for number, form in zip(rows[0], formats, strict=True)]
        return f"| the trained policy | {' | '.join(cells)} |"
    columns = zip(np.median(rows, axis=0), np.min(rows, axis=0), np.max(rows, axis=0), formats, strict=True)
    cells = [f"{median:{form}} ({least:{form}} to {most:{form}})" for median, least, most, form in columns]
    return f"| {len(rows)} trained policies | {' | '.join(cells)} |"


def congestion_controls(name: str, count: int, policies: Path) -> None:
    """The table of a task whose policy controls a rate or a window."""
    env = gymnasium.make(f"Ropewalk/{name}-v0", disable_env_checker=True)
    learned = trained(policies, name)
    played: list[list[list[float]]] = [[] for _ in learned]
    rows: dict[str, list[list[float]]] = {}
    for seed in range(FIRST_SEED, FIRST_SEED + count):
        for policy, episodes in zip(learned, played, strict=True):
            policy.reset()
            episodes.append(measured(play(env, policy.act, seed)))
        for algorithm in ALGORITHMS:
            episode = env.unwrapped.baseline(algorithm, seed=seed)  # type: ignore[attr-defined]
            rows.setdefault(f"`{algorithm}`", []).append(measured({"rewards": episode.rewards, **episode.infos}))
    print(f"\n**{name}**, medians of {count} worlds\n")
    print("| | reward per step | share of the capacity | RTT / minimum RTT | lost, % |\n|---|---|---|---|---|")
    if learned:
        print(of_policies(np.median(played, axis=1), [".3g"] * 4))
    for row, episodes in rows.items():
        print(f"| {row} | " + " | ".join(f"{value:.3g}" for value in np.median(episodes, axis=0)) + " |")


def schedulers(count: int, policies: Path) -> None:
    """The table of the scheduler's task: answers of 256 kB."""
    env = gymnasium.make("Ropewalk/PathScheduling-v0", disable_env_checker=True)
    inner: Any = env.unwrapped
    learned = trained(policies, "PathScheduling")
    played: list[list[list[float]]] = [[] for _ in learned]
    rows: dict[str, list[list[float]]] = {}
    for seed in range(FIRST_SEED, FIRST_SEED + count):
        for policy, episodes in zip(learned, played, strict=True):
            policy.reset()
            play(env, lambda observation, policy=policy: int(np.argmax(policy.act(observation))), seed)
            episodes.append(answers(inner.results()))
        for name in SCHEDULERS:
            rows.setdefault(f"`{name}`", []).append(answers(inner.baseline(name, seed=seed).results))
    best = np.array([[episode[0] for episode in episodes] for episodes in (*rows.values(), *played)]).min(axis=0)

    def columns(episodes: list[list[float]]) -> list[float]:
        times, counts = np.array(episodes).T
        return [float(np.median(times)), float(np.exp(np.log(times / best).mean())), float(counts.sum())]

    print(f"\n**PathScheduling**, {count} worlds\n")
    print("| | median of answers' median times, ms | over the best of the world, geometric mean | answers |")
    print("|---|---|---|---|")
    if learned:
        print(of_policies([*map(columns, played)], [".0f", ".2f", ".0f"]))
    for row, episodes in rows.items():
        time_ms, ratio, total = columns(episodes)
        print(f"| {row} | {time_ms:.0f} | {ratio:.2f} | {total:.0f} |")


def answers(results: ropewalk.Results) -> list[float]:
    """The median time of an answer in ms, and the number of answers."""
    flow = results.flows.to_pandas().iloc[0]
    return [float(flow["response_time_ms.p50"]), float(flow["requests"])]


def main() -> None:
    parser = argparse.ArgumentParser(description="Policies for the tasks of papers.")
    verbs = parser.add_subparsers(dest="verb", required=True)
    training = verbs.add_parser("train")
    training.add_argument("task", choices=list(SCALES))
    training.add_argument("path", help="the file to write")
    training.add_argument("--steps", type=int, default=3_000_000)
    training.add_argument("--environments", type=int, default=64)
    training.add_argument("--seed", type=int, default=1)
    table = verbs.add_parser("table")
    table.add_argument("--worlds", type=int, default=30)
    table.add_argument(
        "--policies", type=Path, default=Path(__file__).parent / "policies", help="the folder of trained policies"
    )
    arguments = parser.parse_args()
    if arguments.verb == "train":
        train(arguments.task, arguments.path, arguments.steps, arguments.environments, arguments.seed)
        return
    congestion_controls("Aurora", arguments.worlds, arguments.policies)
    congestion_controls("Orca", arguments.worlds, arguments.policies)
    schedulers(arguments.worlds, arguments.policies)


if __name__ == "__main__":
    main()
