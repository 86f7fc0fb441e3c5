"""Makes the models of the tests, and the answers of onnxruntime to one of them. Needs onnx, onnxruntime, numpy."""

import pathlib

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

FOLDER = pathlib.Path(__file__).parent


def save(name, nodes, constants, shape, outputs, metadata=()):
    graph = helper.make_graph(
        nodes,
        name,
        [helper.make_tensor_value_info("observation", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("action", TensorProto.FLOAT, outputs)],
        [numpy_helper.from_array(np.array(value), key) for key, value in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    helper.set_model_props(model, dict(metadata))
    onnx.save(model, FOLDER / f"{name}.onnx")
    return model


def f32(values):
    return np.array(values, dtype=np.float32)


node = helper.make_node

# Whole numbers: the answer is exact. action = relu([1, 2, 3] x [[1, -1], [2, -2], [3, -3]] + [1, 1]) = [15, 0]
save(
    "exact",
    [node("Gemm", ["observation", "w", "b"], ["h"], transB=1), node("Relu", ["h"], ["action"])],
    {"w": f32([[1, 2, 3], [-1, -2, -3]]), "b": f32([1, 1])},
    [1, 3],
    [1, 2],
    {"ropewalk.version": "1"},
)

# Every operator, with answers of onnxruntime.
rng = np.random.default_rng(1)
random = lambda *shape: rng.standard_normal(shape).astype(np.float32)  # noqa: E731
nodes = [
    node("MatMul", ["observation", "w"], ["a"]),
    node("Add", ["a", "row"], ["b"]),
    node("Tanh", ["b"], ["tanh"]),
    node("Sigmoid", ["b"], ["sigmoid"]),
    node("Elu", ["b"], ["elu"], alpha=0.5),
    node("LeakyRelu", ["b"], ["leaky"], alpha=0.1),
    node("Softplus", ["b"], ["softplus"]),
    node("Exp", ["tanh"], ["exp"]),
    node("Neg", ["exp"], ["neg"]),
    node("Abs", ["neg"], ["abs"]),
    node("Sqrt", ["abs"], ["sqrt"]),
    node("Clip", ["b", "low", "high"], ["clip"]),
    node("Softmax", ["b"], ["softmax"]),
    node("LayerNormalization", ["b", "scale", "row"], ["norm"]),
    node("Mul", ["tanh", "scale"], ["mul"]),
    node("Sub", ["mul", "column"], ["sub"]),
    node("Div", ["sub", "sqrt"], ["div"]),
    node("Max", ["div", "elu"], ["max"]),
    node("Min", ["div", "leaky"], ["min"]),
    node("Concat", ["max", "min", "softplus", "sigmoid", "clip", "softmax", "norm"], ["long"], axis=-1),
    node("Unsqueeze", ["long", "first"], ["unsqueezed"]),
    node("Squeeze", ["unsqueezed", "first"], ["squeezed"]),
    node("Constant", [], ["shape"], value_ints=[4, -1]),
    node("Reshape", ["squeezed", "shape"], ["square"]),
    node("Flatten", ["square"], ["flat"], axis=0),
    node("Cast", ["flat"], ["cast"], to=1),
    node("Dropout", ["cast"], ["dropped"]),
    node("Identity", ["dropped"], ["same"]),
    node("Gemm", ["same", "out", "bias"], ["action"], transB=1),
]
constants = {
    "w": random(6, 8),
    "row": random(8),
    "scale": random(8),
    "column": random(1, 1),
    "low": f32(-0.5),
    "high": f32(0.5),
    "first": np.array([0], dtype=np.int64),
    "out": random(3, 56),
    "bias": random(3),
}
model = save("operators", nodes, constants, [1, 6], [1, 3])
session = onnxruntime.InferenceSession(model.SerializeToString())
with open(FOLDER / "operators.txt", "w") as answers:
    for _ in range(16):
        observation = random(1, 6)
        action = session.run(None, {"observation": observation})[0]
        answers.write(" ".join(str(x) for x in [*observation[0], *action[0]]) + "\n")

# Policies. `steady` answers 0 always, `nan` NaN from the first decision on.
def meaning(**changes):
    keys = {"version": "1", "observation": "loss_ratio,queue_delay_ms", "history": "1", "action": "window_change(1)"}
    keys |= {"interval": "rtt", "paths": "1"} | changes
    return {f"ropewalk.{key}": value for key, value in keys.items()}


zero = {"w": f32([[0], [0]])}
layer = [node("MatMul", ["observation", "w"], ["action"])]
save("steady", layer, zero, [1, 2], [1, 1], meaning())
root = [node("MatMul", ["observation", "w"], ["h"]), node("Sub", ["h", "one"], ["i"]), node("Sqrt", ["i"], ["action"])]
save("nan-answer", root, {**zero, "one": f32([1])}, [1, 2], [1, 1], meaning())
save("group", layer, {"w": f32([[0, 0]] * 4)}, [1, 4], [1, 2], meaning(paths="2"))
save("wrong-size", layer, {"w": f32([[0]] * 3)}, [1, 3], [1, 1], meaning())
save("wrong-version", layer, zero, [1, 2], [1, 1], meaning(version="2"))
save("wrong-observation", layer, zero, [1, 2], [1, 1], meaning(observation="loss_ratio,queue"))
save("wrong-action", layer, zero, [1, 2], [1, 1], meaning(action="steer"))
save("wrong-interval", layer, zero, [1, 2], [1, 1], meaning(interval="10us"))
save("no-metadata", layer, zero, [1, 2], [1, 1])

# Models that are refused.
identity = [node("Identity", ["observation"], ["action"])]
save("dynamic", identity, {}, ["batch", 3], ["batch", 3])
save("matrix", identity, {}, [2, 3], [2, 3])
save("recurrent", [node("Sin", ["observation"], ["action"])], {}, [1, 3], [1, 3])
dense = [node("MatMul", ["observation", "w"], ["action"])]
save("nan", dense, {"w": f32([[float("nan"), 1]])}, [1, 1], [1, 2])
save("double", dense, {"w": np.ones((1, 2))}, [1, 1], [1, 2])
save("mismatch", dense, {"w": f32([[1, 1], [1, 1]])}, [1, 3], [1, 2])
large = [node("Concat", ["observation"] * 64, ["a"], axis=-1), node("Concat", ["a"] * 64, ["b"], axis=-1)]
save("large", [*large, node("Concat", ["b"] * 512, ["action"], axis=-1)], {}, [1, 1], [1, 64 * 64 * 512])
