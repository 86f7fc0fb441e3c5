"""Tasks of published papers as environments, with their papers' worlds, observations, actions and rewards.

`gymnasium.make("Ropewalk/Aurora-v0")` is the environment of a task; keywords change its keys.
docs/reference/policies.md says what differs from the papers.
"""

from __future__ import annotations

from typing import Any, NamedTuple

__all__ = ["TASKS", "Task"]


class Task(NamedTuple):
    """An environment with the keys of a paper."""

    name: str
    """Its id is `Ropewalk/NAME-v0`."""
    environment: str
    """The environment whose keys these are: `SinglePath` or `Scenario`."""
    keys: dict[str, Any]
    """The arguments of that environment."""
    source: str
    """The paper, and where in it or in its authors' code the numbers are."""


TASKS = (
    Task(
        "Aurora",
        "SinglePath",
        {
            "paths": [{"rate_mbps": [1.2, 6], "rtt_ms": [100, 1000], "queue_packets": [2, 2981], "loss": [0, 0.05]}],
            "observation": "aurora",
            "history": 10,
            "action": "rate_change(0.025)",
            "interval": "rtt",
            "reward": "aurora",
            "duration_s": 60,
        },
        "Jay, Rotman, Godfrey, Schapira, Tamar, ICML 2019: 100 to 500 packets of 1500 bytes per second, 50 to 500 ms "
        "one way, 2 to 2981 packets, loss up to 5 % (src/gym/network_sim.py of PCC-RL)",
    ),
    Task(
        "Orca",
        "SinglePath",
        {
            "paths": [{"rate_mbps": [6, 192], "rtt_ms": [4, 400], "queue_packets": [2, 64000]}],
            "observation": "orca",
            "history": 10,
            "action": "cubic_steering(2)",
            "interval": "20ms",
            "reward": "orca",
            "duration_s": 10,
        },
        "Abbasloo, Yen, Chao, SIGCOMM 2020: 6 to 192 Mbit/s, RTT 4 to 400 ms, buffers of 3 kB to 96 MB",
    ),
    Task(
        "PathScheduling",
        "Scenario",
        {"scenario": "path-scheduling", "decides": "packet", "interval": "10ms", "reward": {"elapsed_ms": -0.1}},
        "De Coninck, Bonaventure, CoNEXT 2017: answers of 256 kB over two paths; Kanakis' learned scheduler (VU "
        "Amsterdam 2020, central_service/environment of mpquic-rl) draws its worlds from the same ranges",
    ),
)
