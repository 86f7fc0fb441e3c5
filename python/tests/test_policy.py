"""Policies: the decisions of the Rust code, beside onnxruntime's and those of the network that was exported."""

from __future__ import annotations

import functools
import itertools
from pathlib import Path

import pytest

import ropewalk

np = pytest.importorskip("numpy")
pytest.importorskip("onnx")

from ropewalk.learning.export import export_onnx  # noqa: E402

MODELS = Path(__file__).parents[2] / "cc/policy/tests/models"
export = functools.partial(export_onnx, observation="orca", history=1, action="window", interval="rtt")


def test_whole_numbers_are_exact() -> None:
    policy = ropewalk.Policy(MODELS / "exact.onnx")
    assert (policy.observation_size, policy.action_size) == (3, 2)
    assert policy.act([1, 2, 3]) == [15, 0]


def test_a_refused_model_and_a_wrong_observation_say_why() -> None:
    with pytest.raises(ropewalk.PolicyError, match=r"recurrent.onnx: unsupported operator `Sin`"):
        ropewalk.Policy(MODELS / "recurrent.onnx")
    with pytest.raises(FileNotFoundError):
        ropewalk.Policy(MODELS / "missing.onnx")
    with pytest.raises(ropewalk.PolicyError, match="an observation of 2 numbers; the policy takes 3"):
        ropewalk.Policy(MODELS / "exact.onnx").act([1, 2])


def test_a_recurrent_policy_goes_on_from_its_last_decision_until_it_is_reset() -> None:
    policy = ropewalk.Policy(MODELS / "counting.onnx")
    assert (policy.observation_size, policy.action_size, policy.metadata["ropewalk.state"]) == (2, 1, "1")
    assert [policy.act([0, 0]) for _ in range(3)] == [[1], [2], [3]]
    policy.reset()
    assert policy.act([0, 0]) == [1]
    with pytest.raises(ropewalk.PolicyError, match="the policy's state is inf"):
        policy.act([float("inf"), 0])


def test_an_observation_may_be_one_row_of_a_matrix() -> None:
    policy = ropewalk.Policy(MODELS / "exact.onnx")
    rows = [[[1, 2, 3]], np.array([[1, 2, 3]]), np.array([[1.0, 9.0, 2.0, 9.0, 3.0]])[:, ::2], ((1, 2, 3),)]
    assert [policy.act(row) for row in rows] == [[15, 0]] * 4
    with pytest.raises(ropewalk.PolicyError, match="2 observations; a policy takes one"):
        policy.act(np.ones((2, 3)))
    with pytest.raises(ropewalk.PolicyError, match="3 numbers, or one row of them"):
        policy.act("abc")  # type: ignore[arg-type]
    with pytest.raises(ropewalk.PolicyError, match="3 numbers, or one row of them"):
        policy.act(np.ones((1, 1, 3)))


def test_a_model_of_64_bit_floats_is_rounded_with_a_note() -> None:
    policy = ropewalk.Policy(MODELS / "double.onnx")
    assert policy.act([3]) == [3, np.float32(3) * np.float32(1 / 3)]
    assert policy.notes == ["the model's 64-bit floats were rounded to 32 bits"]
    assert ropewalk.Policy(MODELS / "exact.onnx").notes == []


def test_an_exported_network_decides_as_the_network(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    sizes = [7, 32, 32, 2]
    layers = [(rng.standard_normal((n, m)) / n**0.5, rng.standard_normal(m)) for n, m in itertools.pairwise(sizes)]
    layers = [(weights.astype(np.float32), bias.astype(np.float32)) for weights, bias in layers]
    mean, deviation = rng.standard_normal(7).astype(np.float32), np.full(7, 2, np.float32)
    file = tmp_path / "policy.onnx"
    export(file, layers, mean=mean, deviation=deviation, clip=5.0)
    policy = ropewalk.Policy(file)
    assert policy.metadata["ropewalk.observation"] == "orca"
    for _ in range(100):
        observation = rng.standard_normal(7).astype(np.float32)
        x = np.clip((observation.astype(np.float64) - mean) / deviation, -5, 5)
        for index, (weights, bias) in enumerate(layers):
            x = x @ weights.astype(np.float64) + bias
            x = np.tanh(x) if index < 2 else x
        # A sum of 32 products below 4 each takes 32 roundings of at most 2^-24 of its size, in each of three layers.
        assert policy.act(observation) == pytest.approx(x, abs=3 * 32 * 2**-24 * 32 * 4)


def test_onnxruntime_differs_by_rounding_only() -> None:
    onnxruntime = pytest.importorskip("onnxruntime")
    session = onnxruntime.InferenceSession(MODELS / "operators.onnx")
    policy = ropewalk.Policy(MODELS / "operators.onnx")
    for _ in range(100):
        observation = np.random.default_rng(1).standard_normal(6).astype(np.float32)
        expected = session.run(None, {"observation": observation[None]})[0][0]
        # Sums of 56 products below 100, some ten roundings before.
        assert policy.act(observation) == pytest.approx(expected, abs=66 * 2**-23 * 100)


def test_layers_that_do_not_go_together_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"layer 1: weights \(4, 1\) and bias \(1,\) after 3 numbers"):
        export(tmp_path / "x.onnx", [(np.ones((2, 3)), np.ones(3)), (np.ones((4, 1)), np.ones(1))])
