"""Trains a congestion control by PPO, in one file in the style of CleanRL, and exports it as ONNX.

    python ppo.py policy.onnx --steps 3000000

Worlds are drawn for every episode: one path with a drop-tail queue. The policy sees ratios of what one RTT
measured, and multiplies the congestion window once per RTT. It sees no rates or delays, so that it can be used in
worlds that it was not trained in. JAX rather than PyTorch: a wheel of 80 MB where torch brings gigabytes of CUDA.

PPO: Schulman et al., "Proximal Policy Optimization Algorithms", 2017. Needs `ropewalk[learning]`, `jax` and `optax`.
"""

from __future__ import annotations

import argparse
import itertools
import time
from typing import Any, NamedTuple

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import optax

import ropewalk.learning

# The policy's observation and action, which the file states for every program that runs it.
MEANING = {
    "observation": "rtt_rate,latency_gradient,send_ratio,loss_ratio,dr_ratio,bdp_cwnd,acked_ratio,last_action",
    "history": 3,
    "action": "window_change(1)",
    "interval": "rtt",
}
# Sage's reward: throughput squared over capacity squared, times minimum RTT over smoothed RTT up to 0.8; at most 25.
REWARD_SCALE = 1 / 25
WORLDS = {
    "paths": [{"rate_mbps": [4, 40], "rtt_ms": [10, 80], "queue_bdp": [0.5, 4], "loss": [0, 0.0005]}],
    "duration_s": 10,
    "reward": "sage",
}
HIDDEN = 32
LIMIT = 10.0  # limit of a normalised observation


class Batch(NamedTuple):
    """A rollout: time x environments."""

    observations: Any
    actions: Any
    log_probabilities: Any
    advantages: Any
    returns: Any
    valid: Any


def network(key: jax.Array, sizes: list[int], last_scale: float) -> list[tuple[jax.Array, jax.Array]]:
    """Layers with orthogonal weights: inputs x outputs, and biases."""
    scales = [2**0.5] * (len(sizes) - 2) + [last_scale]
    keys = jax.random.split(key, len(scales))
    orthogonal = jax.nn.initializers.orthogonal
    shapes = itertools.pairwise(sizes)
    return [
        (orthogonal(scale)(key, shape), jnp.zeros(shape[1]))
        for key, scale, shape in zip(keys, scales, shapes, strict=True)
    ]


def forward(layers: list[tuple[jax.Array, jax.Array]], x: jax.Array) -> jax.Array:
    for weights, bias in layers[:-1]:
        x = jnp.tanh(x @ weights + bias)
    weights, bias = layers[-1]
    return x @ weights + bias


def log_probability(parameters: Any, observations: jax.Array, actions: jax.Array) -> jax.Array:
    mean, log_deviation = forward(parameters["actor"], observations), parameters["log_deviation"]
    terms = -0.5 * ((actions - mean) / jnp.exp(log_deviation)) ** 2 - log_deviation - 0.5 * jnp.log(2 * jnp.pi)
    return terms.sum(-1)


@jax.jit
def decide(parameters: Any, observations: jax.Array, key: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Actions drawn from the policy, their log-probabilities, and the values of the observations."""
    mean = forward(parameters["actor"], observations)
    actions = mean + jnp.exp(parameters["log_deviation"]) * jax.random.normal(key, mean.shape)
    return (
        actions,
        log_probability(parameters, observations, actions),
        forward(parameters["critic"], observations)[..., 0],
    )


def loss(parameters: Any, batch: Batch) -> jax.Array:
    """Clipped surrogate, squared error of the value, entropy (a Gaussian's, by its deviation)."""
    mean = lambda x: (x * batch.valid).sum() / batch.valid.sum()  # noqa: E731
    ratio = jnp.exp(log_probability(parameters, batch.observations, batch.actions) - batch.log_probabilities)
    advantages = (batch.advantages - mean(batch.advantages)) / (jnp.sqrt(mean(batch.advantages**2)) + 1e-8)
    surrogate = jnp.minimum(ratio * advantages, jnp.clip(ratio, 0.8, 1.2) * advantages)
    errors = (forward(parameters["critic"], batch.observations)[..., 0] - batch.returns) ** 2
    return -mean(surrogate) + 0.5 * mean(errors) - 0.001 * parameters["log_deviation"].sum()


def make_update(optimizer: optax.GradientTransformation, epochs: int, minibatches: int) -> Any:
    def minibatch(carry: Any, batch: Batch) -> Any:
        parameters, state = carry
        updates, state = optimizer.update(jax.grad(loss)(parameters, batch), state, parameters)
        return (optax.apply_updates(parameters, updates), state), None

    @jax.jit
    def update(parameters: Any, state: Any, batch: Batch, key: jax.Array) -> Any:
        def epoch(carry: Any, key: jax.Array) -> Any:
            order = jax.random.permutation(key, batch.valid.shape[0])
            parts = jax.tree.map(lambda x: x[order].reshape(minibatches, -1, *x.shape[1:]), batch)
            return jax.lax.scan(minibatch, carry, parts)

        return jax.lax.scan(epoch, (parameters, state), jax.random.split(key, epochs))[0]

    return update


class Normalizer:
    """Mean and deviation of all observations so far."""

    def __init__(self, size: int) -> None:
        self.count, self.mean, self.square = 1e-4, np.zeros(size), np.ones(size)

    def update(self, observations: np.ndarray) -> None:
        share = len(observations) / (self.count + len(observations))
        self.count += len(observations)
        self.mean += share * (observations.mean(0) - self.mean)
        self.square += share * ((observations.astype(np.float64) ** 2).mean(0) - self.square)

    @property
    def deviation(self) -> np.ndarray:
        return np.sqrt(np.maximum(self.square - self.mean**2, 1e-8))

    def __call__(self, observations: np.ndarray) -> np.ndarray:
        return np.clip((observations - self.mean) / self.deviation, -LIMIT, LIMIT).astype(np.float32)


def train(
    environments: gymnasium.vector.VectorEnv[Any, Any, Any], steps: int, seed: int = 1, rollout: int = 128
) -> tuple[Any, Normalizer]:
    """Trains for this many steps of all environments together. They reset by AutoresetMode.NEXT_STEP."""
    count, gamma, trace = environments.num_envs, 0.98, 0.95
    size = environments.single_observation_space.shape[0]
    outputs = environments.single_action_space.shape[0]
    updates = max(1, steps // (count * rollout))
    key, actor, critic = jax.random.split(jax.random.key(seed), 3)
    parameters = {
        "actor": network(actor, [size, HIDDEN, HIDDEN, outputs], 0.01),
        "critic": network(critic, [size, HIDDEN, HIDDEN, 1], 1.0),
        "log_deviation": jnp.full(outputs, -1.0),
    }
    rate = optax.linear_schedule(1e-3, 0.0, updates * 8 * 8)
    optimizer = optax.chain(optax.clip_by_global_norm(0.5), optax.adam(rate, eps=1e-5))
    state, update, normalizer = optimizer.init(parameters), make_update(optimizer, 8, 8), Normalizer(size)
    raw, _ = environments.reset(seed=seed)
    done, start = np.zeros(count, bool), time.monotonic()
    for number in range(updates):
        observations = np.zeros((rollout + 1, count, size), np.float32)
        actions, values = np.zeros((rollout, count, outputs), np.float32), np.zeros((rollout + 1, count))
        log_probabilities, rewards = np.zeros((rollout, count)), np.zeros((rollout, count))
        valid, ends = np.zeros((rollout, count), bool), np.zeros((rollout, count), bool)
        for step in range(rollout + 1):
            normalizer.update(raw)
            observations[step] = normalizer(raw)
            key, draw = jax.random.split(key)
            drawn, log_p, values[step] = jax.device_get(decide(parameters, observations[step], draw))
            if step == rollout:
                break
            actions[step], log_probabilities[step], valid[step] = drawn, log_p, ~done
            low, high = environments.single_action_space.low, environments.single_action_space.high
            raw, rewards[step], terminated, truncated, _ = environments.step(np.clip(drawn, low, high))
            done = ends[step] = terminated | truncated
        rewards *= REWARD_SCALE
        advantages, following = np.zeros((rollout, count)), np.zeros(count)
        for step in reversed(range(rollout)):
            # An episode only ends by its time, so the last observation has a value like any other.
            error = rewards[step] + gamma * values[step + 1] - values[step]
            following = advantages[step] = error + gamma * trace * ~ends[step] * following
        flat = lambda x: jnp.asarray(x.reshape(rollout * count, *x.shape[2:]), jnp.float32)  # noqa: E731
        arrays = (observations[:-1], actions, log_probabilities, advantages, advantages + values[:-1], valid)
        key, shuffle = jax.random.split(key)
        parameters, state = update(parameters, state, Batch(*map(flat, arrays)), shuffle)
        if number % 10 == 9 or number == updates - 1:
            done_steps, mean = (number + 1) * rollout * count, rewards[valid].mean()
            rate_now = done_steps / (time.monotonic() - start)
            print(f"{done_steps:9} steps, reward {mean:.3f}, {rate_now:.0f} steps/s", flush=True)
    return parameters, normalizer


def make(count: int) -> gymnasium.vector.VectorEnv[Any, Any, Any]:
    mode = gymnasium.VectorizeMode.VECTOR_ENTRY_POINT
    return gymnasium.make_vec("Ropewalk/SinglePath-v0", count, mode, **WORLDS, **MEANING)


def export(path: str, parameters: Any, normalizer: Normalizer) -> None:
    layers = [(np.asarray(weights), np.asarray(bias)) for weights, bias in parameters["actor"]]
    ropewalk.learning.export_onnx(
        path, layers, **MEANING, mean=normalizer.mean, deviation=normalizer.deviation, clip=LIMIT
    )


def main() -> None:
    parser = argparse.ArgumentParser(description="Trains a congestion control by PPO.")
    parser.add_argument("path", help="the ONNX file to write")
    parser.add_argument("--steps", type=int, default=3_000_000)
    parser.add_argument("--environments", type=int, default=64)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    environments = make(arguments.environments)
    export(arguments.path, *train(environments, arguments.steps, arguments.seed))


if __name__ == "__main__":
    main()
