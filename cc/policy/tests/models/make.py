"""Makes the models of the tests, and the answers of onnxruntime to one of them. Needs onnx, onnxruntime, numpy."""

import pathlib

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

FOLDER = pathlib.Path(__file__).parent


def save(name, nodes, constants, shape, outputs, metadata=(), element=TensorProto.FLOAT):
    graph = helper.make_graph(
        nodes,
        name,
        [helper.make_tensor_value_info("observation", element, shape)],
        [helper.make_tensor_value_info("action", element, outputs)],
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


def answered(name, nodes, constants, inputs, outputs):
    """Saves a model, and onnxruntime's answers: observation and action, a line each."""
    model = save(name, nodes, constants, [1, inputs], [1, outputs])
    session = onnxruntime.InferenceSession(model.SerializeToString())
    with open(FOLDER / f"{name}.txt", "w") as answers:
        for _ in range(16):
            observation = random(1, inputs)
            action = session.run(None, {"observation": observation})[0]
            answers.write(" ".join(str(x) for x in [*observation[0], *action[0]]) + "\n")


answered("operators", nodes, constants, 6, 3)

def i64(*values):
    return np.array(values, dtype=np.int64)


# Layers of published policies: convolutions over a history (Pensieve, Genet), GRU (Sage), a Gaussian head (SAC).
answered(
    "convolution",
    [
        node("Reshape", ["observation", "rows"], ["x"]),
        node("Conv", ["x", "w1", "b1"], ["c1"], strides=[2], pads=[1, 2], dilations=[2]),
        node("BatchNormalization", ["c1", "scale", "shift", "mean", "variance"], ["n1"], epsilon=0.01),
        node("Relu", ["n1"], ["r1"]),
        node("Conv", ["r1", "w2"], ["c2"], group=2),
        node("Unsqueeze", ["c2", "last"], ["plane"]),
        node("Conv", ["plane", "w3"], ["c3"], pads=[1, 0, 0, 1]),
        node("Flatten", ["c3"], ["flat"]),
        node("MatMul", ["flat", "out"], ["action"]),
    ],
    {
        "rows": i64(1, 3, 10),
        "w1": random(4, 3, 3),
        "b1": random(4),
        "scale": random(4),
        "shift": random(4),
        "mean": random(4),
        "variance": np.abs(random(4)) + f32(0.1),
        "w2": random(6, 2, 2),
        "last": i64(3),
        "w3": random(2, 6, 2, 2),
        "out": random(8, 2),
    },
    30,
    2,
)
for name, before in (("gru", 0), ("gru-linear", 1)):
    answered(
        name,
        [
            node("Reshape", ["observation", "rows"], ["x"]),
            node("Transpose", ["x"], ["steps"], perm=[1, 0, 2]),
            node("GRU", ["steps", "w", "r", "b", "", "h0"], ["all", "last"], hidden_size=4, linear_before_reset=before),
            node("Slice", ["all", "from", "to", "axis"], ["third"]),
            node("Squeeze", ["third", "axis"], ["third0"]),
            node("Concat", ["last", "third0"], ["both"], axis=2),
            node("Squeeze", ["both", "axis"], ["action"]),
        ],
        {
            "rows": i64(1, 5, 3),
            "w": random(1, 12, 3),
            "r": random(1, 12, 4),
            "b": random(1, 24),
            "h0": random(1, 1, 4),
            "from": i64(2),
            "to": i64(3),
            "axis": i64(0),
        },
        15,
        8,
    )
answered(
    "gru-plain",
    [
        node("Unsqueeze", ["observation", "axis"], ["x"]),
        node("GRU", ["x", "w", "r"], ["", "last"], hidden_size=2, activations=["Sigmoid", "Tanh"]),
        node("Squeeze", ["last", "axis"], ["action"]),
    ],
    {"axis": i64(0), "w": random(1, 6, 3), "r": random(1, 6, 2)},
    3,
    2,
)
answered(
    "indexing",
    [
        node("Erf", ["observation"], ["erf"]),
        node("Split", ["erf", "parts"], ["left", "middle", "right"], axis=-1),
        node("Gather", ["observation", "picks"], ["picked"], axis=1),
        node("Gather", ["observation", "one"], ["single"], axis=1),
        node("Slice", ["observation", "from", "to", "axis", "step"], ["backwards"]),
        node("Slice", ["observation", "start", "far"], ["tail"]),
        # The size of the batch, as torch writes `x.view(x.size(0), -1)`.
        node("Shape", ["picked"], ["sizes"]),
        node("Gather", ["sizes", "zero"], ["batch"]),
        node("Unsqueeze", ["batch", "first"], ["batch1"]),
        node("Concat", ["batch1", "rest"], ["wanted"], axis=0),
        node("Reshape", ["picked", "wanted"], ["long"]),
        node("Unsqueeze", ["single", "first"], ["row"]),
        node("Reshape", ["row", "wanted"], ["single1"]),
        node("Transpose", ["long"], ["column"]),
        node("MatMul", ["long", "column"], ["square"]),
        node("Concat", ["left", "right", "long", "single1", "backwards", "tail", "square"], ["action"], axis=1),
    ],
    {
        "parts": i64(2, 3, 1),
        "picks": np.array([[0, -1], [2, 2]], dtype=np.int64),
        "one": np.array(3, dtype=np.int64),
        "from": i64(-2),
        "to": i64(-100),
        "axis": i64(-1),
        "step": i64(-2),
        "start": i64(0, 4),
        "far": i64(1, 2**62),
        "zero": np.array(0, dtype=np.int64),
        "first": i64(0),
        "rest": i64(-1),
    },
    6,
    14,
)

answered(
    "lstm",
    [
        node("Reshape", ["observation", "rows"], ["x"]),
        node("LSTM", ["x", "w", "r", "b", "", "h0", "c0"], ["all", "last", "cell"], hidden_size=4),
        node("Slice", ["all", "from", "to", "axis"], ["third"]),
        node("Squeeze", ["third", "axis"], ["third0"]),
        node("Concat", ["last", "third0", "cell"], ["both"], axis=2),
        node("Squeeze", ["both", "axis"], ["action"]),
    ],
    {
        "rows": i64(5, 1, 3),
        "w": random(1, 16, 3),
        "r": random(1, 16, 4),
        "b": random(1, 32),
        "h0": random(1, 1, 4),
        "c0": random(1, 1, 4),
        "from": i64(2),
        "to": i64(3),
        "axis": i64(0),
    },
    15,
    12,
)
answered(
    "lstm-plain",
    [
        node("Unsqueeze", ["observation", "axis"], ["x"]),
        node("LSTM", ["x", "w", "r"], ["", "last"], hidden_size=2, activations=["Sigmoid", "Tanh", "Tanh"]),
        node("Squeeze", ["last", "axis"], ["action"]),
    ],
    {"axis": i64(0), "w": random(1, 8, 3), "r": random(1, 8, 2)},
    3,
    2,
)

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
save("rounded", layer, {"w": np.zeros((2, 1))}, [1, 2], [1, 1], meaning(), element=TensorProto.DOUBLE)
save("group", layer, {"w": f32([[0, 0]] * 4)}, [1, 4], [1, 2], meaning(paths="2"))
# Counts its decisions in its state: action and state are both 0.1 of the observations' sum plus the state plus one.
counting = [node("Gemm", ["observation", "w", "one"], ["action"])]
count = {"w": f32([[0.1, 0.1], [0.1, 0.1], [1, 1]]), "one": f32([1, 1])}
save("counting", counting, count, [1, 3], [1, 2], meaning(state="1"))
save("wrong-state", counting, count, [1, 3], [1, 2], meaning(state="2"))
save("wrong-size", layer, {"w": f32([[0]] * 3)}, [1, 3], [1, 1], meaning())
save("wrong-version", layer, zero, [1, 2], [1, 1], meaning(version="2"))
save("wrong-observation", layer, zero, [1, 2], [1, 1], meaning(observation="loss_ratio,queue"))
save("wrong-action", layer, zero, [1, 2], [1, 1], meaning(action="steer"))
save("wrong-interval", layer, zero, [1, 2], [1, 1], meaning(interval="10us"))
save("no-metadata", layer, zero, [1, 2], [1, 1])

# Schedulers over two paths. `by-packet` prefers a short RTT and few packets in flight, and room more than both.
packet = {"observation": "packet", "action": "path", "interval": "packet", "paths": "2"}
by_path = np.zeros((19, 2), dtype=np.float32)
for path in range(2):
    by_path[8 * path + np.array([1, 2, 5]), path] = [40, -1, -0.5]
save("by-packet", layer, {"w": by_path}, [1, 19], [1, 2], meaning(**packet))
# `by-path` and `by-weights` prefer the path with the shorter queue and fewer losses.
shorter = f32([[-50, 0], [-1, 0], [0, -50], [0, -1]])
two = {"interval": "50ms", "paths": "2"}
save("by-path", layer, {"w": shorter}, [1, 4], [1, 2], meaning(**two, action="path"))
steer = [node("MatMul", ["observation", "w"], ["h"]), node("Tanh", ["h"], ["action"])]
save("by-weights", steer, {"w": shorter / 50}, [1, 4], [1, 2], meaning(**two, action="weights"))
minus = {"w": np.zeros((19, 2), dtype=np.float32), "one": f32([1, 1])}
save("nan-packet", root, minus, [1, 19], [1, 2], meaning(**packet))
minus = {"w": np.zeros((4, 2), dtype=np.float32), "one": f32([1, 1])}
save("nan-path", root, minus, [1, 4], [1, 2], meaning(**two, action="path"))
rounded = {"w": by_path.astype(np.float64)}
save("rounded-packet", layer, rounded, [1, 19], [1, 2], meaning(**packet), element=TensorProto.DOUBLE)
for name, changes in (
    ("history", {"history": "2"}),
    ("interval", {"interval": "10ms"}),
    ("observation", {"observation": "orca"}),
    ("action", {"action": "weights"}),
    ("paths", {"paths": "1"}),
    ("size", {"paths": "3"}),
):
    save(f"wrong-packet-{name}", layer, {"w": by_path}, [1, 19], [1, 2], meaning(**{**packet, **changes}))

# A batch of any size, and 64-bit floats.
identity = [node("Identity", ["observation"], ["action"])]
save("dynamic", identity, {}, ["batch", 3], ["batch", 3])
dense = [node("MatMul", ["observation", "w"], ["action"])]
save("double", dense, {"w": np.array([[1.0, 1 / 3]])}, [1, 1], [1, 2], element=TensorProto.DOUBLE)

# Models that are refused.
save("endless", identity, {}, [1, "length"], [1, "length"])
save("matrix", identity, {}, [2, 3], [2, 3])
save("recurrent", [node("Sin", ["observation"], ["action"])], {}, [1, 3], [1, 3])
save("nan", dense, {"w": f32([[float("nan"), 1]])}, [1, 1], [1, 2])
save("mismatch", dense, {"w": f32([[1, 1], [1, 1]])}, [1, 3], [1, 2])
large = [node("Concat", ["observation"] * 64, ["a"], axis=-1), node("Concat", ["a"] * 64, ["b"], axis=-1)]
counts = [node("Shape", ["observation"], ["s"]), *[node("Concat", ["s", "s"], ["s"], axis=0) for _ in range(40)]]
save("many-integers", [*counts, *identity], {}, [1, 3], [1, 3])
kernel = node("Conv", ["observation", "w"], ["action"], pads=[60000, 60000])
save("wide", [kernel], {"w": np.ones((1, 1, 3), dtype=np.float32)}, [1, 1], [1, 1])
save("argmax", [node("ArgMax", ["observation"], ["action"])], {}, [1, 3], [1, 1])
peepholes = ["observation", "w", "w", "", "", "", "", "w"]
save("peepholes", [node("LSTM", peepholes, ["action"])], {"w": f32([[1]])}, [1, 3], [1, 1])
save("large", [*large, node("Concat", ["b"] * 512, ["action"], axis=-1)], {}, [1, 1], [1, 64 * 64 * 512])
