"""Environment steps per second and core: Ropewalk's two-path worlds and an environment in plain Python.

    python python/benchmarks/learning.py [--steps N] [--slices N] [--threads N]

A step is 10 ms; the rates of both subflows of an MPTCP flow are set at random between 70 and 110 % of their links', of
40 ms RTT and a queue of one bandwidth-delay product. CPU time is that of the process, so that it is a number per
core whatever else the machine does. Slices of both take turns.

The plain environment has the same interface and worlds (two paths of a rate, a delay and a drop-tail queue, the same
actions and features), and a much simpler model: packets leave by a timer, are acknowledged or not; no TCP, no
retransmission, one event per packet and link.
"""

from __future__ import annotations

import argparse
import heapq
import statistics
import time
from typing import Any

import gymnasium
import numpy as np

from ropewalk.learning import PathRanges
from ropewalk.learning.vector import MultipathVectorEnv

STEP_S = 0.01
PACKET_BITS = 12_000


class PlainEnv(gymnasium.Env[Any, Any]):
    """Two paths in plain Python, after the model of Aurora's simulator (Jay et al., ICML 2019)."""

    def __init__(self, rate_mbps: float, rtt_s: float = 0.04, duration_s: float = 10.0) -> None:
        self.rate, self.delay, self.duration = rate_mbps * 1e6 / PACKET_BITS, rtt_s / 2, duration_s
        self.observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (60,), np.float32)
        self.action_space = gymnasium.spaces.Box(-1, 1, (2,), np.float32)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.now, self.order = 0.0, 0
        self.events: list[tuple[float, int, str, int, float]] = []
        self.send_rates, self.busy_until = [self.rate / 2] * 2, [0.0, 0.0]
        self.least, self.history = [float("inf")] * 2, np.zeros((2, 10, 3), dtype=np.float32)
        for path in (0, 1):
            self._push(0.0, "send", path, 0.0)
        return self._interval(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        for path, a in enumerate(action):
            self.send_rates[path] = self.rate * 0.7 * (1.1 / 0.7) ** ((float(a) + 1) / 2)
        observation = self._interval()
        reward = 10 * sum(self.acked) / STEP_S - 1000 * self.latency - 2000 * sum(self.lost) / max(sum(self.sent), 1)
        return observation, reward, False, self.now >= self.duration, {}

    def _push(self, at: float, kind: str, path: int, sent: float) -> None:
        self.order += 1
        heapq.heappush(self.events, (at, self.order, kind, path, sent))

    def _interval(self) -> Any:
        end = self.now + STEP_S
        self.sent, self.acked, self.lost = [0, 0], [0, 0], [0, 0]
        samples: list[list[tuple[float, float]]] = [[], []]
        while self.events[0][0] < end:
            at, _, kind, path, sent = heapq.heappop(self.events)
            if kind == "send":
                self.sent[path] += 1
                waiting = max(self.busy_until[path] - at, 0.0)
                if waiting * self.rate < 40:
                    self.busy_until[path] = at + waiting + 1 / self.rate
                    self._push(self.busy_until[path] + self.delay, "arrive", path, at)
                else:
                    self._push(at + waiting + 2 * self.delay, "lose", path, at)
                self._push(at + 1 / self.send_rates[path], "send", path, 0.0)
            elif kind == "arrive":
                self._push(at + self.delay, "ack", path, sent)
            elif kind == "ack":
                self.acked[path] += 1
                samples[path].append((at, at - sent))
            else:
                self.lost[path] += 1
        self.now, self.latency = end, 0.0
        self.history[:, :-1] = self.history[:, 1:]
        for path in (0, 1):
            rtts = [rtt for _, rtt in samples[path]]
            mean = sum(rtts) / len(rtts) if rtts else 0.0
            self.least[path] = min(self.least[path], mean or float("inf"))
            half = len(rtts) // 2
            slope = (sum(rtts[half:]) / (len(rtts) - half) - sum(rtts[:half]) / half) / STEP_S if half else 0.0
            ratio = mean / self.least[path] if rtts else 1.0
            self.history[path, -1] = slope, ratio, self.sent[path] / max(self.acked[path], 1)
            self.latency = max(self.latency, mean)
        return self.history.reshape(-1).copy()


class Ropewalk:
    """Worlds with one rate, stepped in slices."""

    COUNT = 64

    def __init__(self, rate_mbps: float, threads: int) -> None:
        path: PathRanges = {"rate_mbps": [rate_mbps] * 2, "rtt_ms": [40, 40], "queue_bdp": [1, 1]}
        action = f"rate({0.7 * rate_mbps}, {1.1 * rate_mbps})"
        self.env = MultipathVectorEnv(self.COUNT, [path, path], threads=threads, duration_s=10.0, action=action)
        self.actions = np.random.default_rng(1).uniform(-1, 1, (97, self.COUNT, 2)).astype(np.float32)
        self.env.reset(seed=1)

    def reset(self) -> float:
        """CPU time of resetting a world, microseconds."""
        cpu = time.process_time()
        self.env.reset()
        return (time.process_time() - cpu) / self.COUNT * 1e6

    def slice(self, steps: int) -> tuple[float, float, float]:
        """Steps per CPU second, CPU nanoseconds per packet and link, and steps per second."""
        batches = steps // self.COUNT
        cpu, real, hops, last = time.process_time(), time.perf_counter(), 0, self.env.packet_hops
        for step in range(batches):
            *_, truncated, _ = self.env.step(self.actions[step % 97])
            if step % 100 == 99 or step == batches - 1 or truncated.any():
                # Episodes that have been reset begin again from 0: at most 1 % of the packets are not counted.
                now = self.env.packet_hops
                hops, last = hops + max(now - last, 0), now
        cpu, real = time.process_time() - cpu, time.perf_counter() - real
        return batches * self.COUNT / cpu, cpu / hops * 1e9, batches * self.COUNT / real


class Plain:
    """The plain environment, stepped in slices."""

    def __init__(self, rate_mbps: float) -> None:
        self.env = PlainEnv(rate_mbps)
        self.actions = np.random.default_rng(1).uniform(-1, 1, (97, 2))
        self.env.reset(seed=1)

    def slice(self, steps: int) -> float:
        """Steps per CPU second."""
        cpu = time.process_time()
        for step in range(steps):
            if self.env.step(self.actions[step % 97])[3]:
                self.env.reset()
        return steps / (time.process_time() - cpu)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=64_000, help="steps of a slice")
    parser.add_argument("--slices", type=int, default=11)
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()
    print(f"best of {arguments.slices} slices of each, taken in turn; ratio: median of the pairs")
    titles = [
        "two paths of",
        "steps / CPU s",
        "CPU ns / packet and link",
        "steps / s",
        "plain, steps / CPU s",
        "ratio",
        "reset, us",
    ]
    print("  ".join(titles))
    for rate in (1, 2, 5, 10, 20, 50):
        ours, plain = Ropewalk(rate, arguments.threads), Plain(rate)
        pairs = [
            (ours.slice(arguments.steps), plain.slice(max(arguments.steps // 32, 100))) for _ in range(arguments.slices)
        ]
        steps, real = max(it[0] for it, _ in pairs), max(it[2] for it, _ in pairs)
        nanoseconds, theirs = min(it[1] for it, _ in pairs), max(it for _, it in pairs)
        reset = min(ours.reset() for _ in range(arguments.slices))
        ratio = statistics.median(it[0] / other for it, other in pairs)
        row = [
            f"{rate} Mbit/s",
            *(f"{it:,.0f}" for it in (steps, nanoseconds, real, theirs)),
            f"{ratio:.1f}",
            f"{reset:.0f}",
        ]
        print("  ".join(cell.rjust(len(title)) for cell, title in zip(row, titles, strict=True)))


if __name__ == "__main__":
    main()
