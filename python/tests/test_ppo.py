"""The training script: the policy that it exports decides as the network that it trained, and training improves it."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import ropewalk

pytest.importorskip("jax")
pytest.importorskip("optax")

SCRIPT = Path(__file__).parents[1] / "examples/ppo.py"


@pytest.fixture(scope="module")
def ppo() -> ModuleType:
    spec = importlib.util.spec_from_file_location("ppo", SCRIPT)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def goodput(file: Path) -> float:
    """Mbit/s of the policy on a link of 10 Mbit/s and 40 ms of round-trip time."""
    text = f"""
        name = "x"
        duration = "10s"
        [[path]]
        name = "link"
        rate = "10mbit"
        delay = "20ms"
        [[flow]]
        name = "tcp"
        congestion = {{ name = "policy", file = "{file}" }}
    """
    results = ropewalk.Scenario.parse(text).run(progress=False)
    return float(results.flows.to_pandas()["goodput_mbps"].iloc[0])


def test_training_raises_the_window_and_the_exported_file_decides_as_the_network(
    ppo: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    worlds = {"paths": [{"rate_mbps": [10, 10], "rtt_ms": [40, 40]}], "duration_s": 5, "reward": "sage"}
    monkeypatch.setattr(ppo, "WORLDS", worlds)
    environments, file = ppo.make(16), tmp_path / "policy.onnx"
    parameters, normalizer = ppo.train(environments, 60_000)
    ppo.export(str(file), parameters, normalizer)
    policy = ropewalk.Policy(file)
    observations, _ = environments.reset(seed=7)
    for _ in range(50):
        expected = np.asarray(ppo.forward(parameters["actor"], normalizer(observations)))
        for observation, action in zip(observations, expected, strict=True):
            # Three layers whose sums of at most 32 products, each below 10, round by 2^-24 of their size.
            assert policy.act(observation) == pytest.approx(action, abs=3 * 32 * 320 * 2**-24)
        observations, *_ = environments.step(expected)
    # A policy that has learned nothing keeps the initial window: ten packets of 1448 bytes in 40 ms are 2.9 Mbit/s.
    assert goodput(file) > 2 * 2.9
