"""Policies of congestion control and of schedulers as ONNX files that the simulator, the tunnel and the lab run.

Needs the package `onnx`.
"""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

__all__ = ["export_onnx", "metadata"]

Activation = Literal["Elu", "LeakyRelu", "Relu", "Sigmoid", "Softplus", "Tanh"]
_OPERATOR_SET = 17
_IR_VERSION = 8


def metadata(
    *, observation: str | Sequence[str], history: int, action: str, interval: str, paths: int = 1, state: int = 0
) -> dict[str, str]:
    """The metadata of a policy's ONNX file for `onnx.helper.set_model_props`, for models exported by another tool.

    An environment has these arguments: `metadata(**env.unwrapped.meaning)`.

    observation: a preset (`aurora`, `orca`, `sage`) or names of features, as a list or separated by commas; `packet`
        for a scheduler's decision at each packet.
    history: intervals in an observation.
    action: the quantity that the output changes, as the environment's `action`; of a scheduler `path`, whose output is
        a number for each path, of which the greatest is chosen, or `weights`.
    interval: a time (`10ms`) or `rtt`; `packet` for a decision at each packet.
    paths: 1 to decide for each path by itself; n for one decision for a group of n paths.
    state: of a recurrent policy, the number of values that it carries from decision to decision: the last ones of the
        model's output return as the last ones of its next input, and are 0 at first.
    """
    if history < 1 or paths < 1 or state < 0:
        raise ValueError(f"history {history} and paths {paths} have to be at least 1, state {state} at least 0")
    return {
        "ropewalk.version": "1",
        "ropewalk.observation": observation if isinstance(observation, str) else ",".join(observation),
        "ropewalk.history": str(history),
        "ropewalk.action": action,
        "ropewalk.interval": interval,
        "ropewalk.paths": str(paths),
        **({"ropewalk.state": str(state)} if state else {}),
    }


def export_onnx(
    path: str | PathLike[str],
    layers: Sequence[tuple[ArrayLike, ArrayLike]],
    *,
    observation: str | Sequence[str],
    history: int,
    action: str,
    interval: str,
    paths: int = 1,
    activation: Activation = "Tanh",
    at_most: ArrayLike | None = None,
    mean: ArrayLike | None = None,
    deviation: ArrayLike | None = None,
    clip: float | None = None,
) -> None:
    """Writes a multilayer perceptron as a policy.

    The observation, limited to `at_most`, less `mean` and divided by `deviation`, each a number for each element, and
    limited to plus or minus `clip`, goes through `layers`: pairs of weights (inputs x outputs) and biases. `activation`
    follows every layer but the last, whose outputs are the action. The other arguments are those of `metadata`.

    Raises ValueError for shapes that do not match, and ImportError without `onnx`.
    """
    import numpy as np
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    matrices = [(np.asarray(weights, np.float32), np.asarray(bias, np.float32)) for weights, bias in layers]
    if not matrices:
        raise ValueError("a policy needs at least one layer")
    for index, (weights, bias) in enumerate(matrices):
        previous = matrices[index - 1][0].shape[1] if index else weights.shape[0]
        if weights.ndim != 2 or bias.shape != weights.shape[1:] or weights.shape[0] != previous:
            raise ValueError(f"layer {index}: weights {weights.shape} and bias {bias.shape} after {previous} numbers")
    inputs, outputs = matrices[0][0].shape[0], matrices[-1][0].shape[1]
    constants: dict[str, Any] = {}
    nodes: list[Any] = []

    def step(operator: str, *operands: str) -> None:
        source = nodes[-1].output[0] if nodes else "observation"
        nodes.append(helper.make_node(operator, [source, *operands], [f"{operator.lower()}{len(nodes)}"]))

    for name, operator, value in (("at_most", "Min", at_most), ("mean", "Sub", mean), ("deviation", "Div", deviation)):
        if value is not None:
            constants[name] = np.broadcast_to(np.asarray(value, np.float32), (inputs,))
            step(operator, name)
    if clip is not None:
        constants["low"], constants["high"] = np.float32(-clip), np.float32(clip)
        step("Clip", "low", "high")
    for index, (weights, bias) in enumerate(matrices):
        constants[f"weights{index}"], constants[f"bias{index}"] = weights, bias
        step("Gemm", f"weights{index}", f"bias{index}")
        if index + 1 < len(matrices):
            step(activation)
    nodes[-1].output[0] = "action"
    graph = helper.make_graph(
        nodes,
        "policy",
        [helper.make_tensor_value_info("observation", TensorProto.FLOAT, [1, inputs])],
        [helper.make_tensor_value_info("action", TensorProto.FLOAT, [1, outputs])],
        [numpy_helper.from_array(np.ascontiguousarray(value), name) for name, value in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", _OPERATOR_SET)], ir_version=_IR_VERSION)
    helper.set_model_props(
        model, metadata(observation=observation, history=history, action=action, interval=interval, paths=paths)
    )
    onnx.save(model, fspath(path))
