//! ONNX models, small enough to be evaluated on every round trip: reading, checking and evaluation.
//!
//! A run has the same digest on every machine, so an evaluation must give the same bits everywhere. Inference libraries
//! choose kernels by the processor (fused multiply-add or not, 4 to 16 lanes, their own `tanh`). Here every product and
//! sum is a rounded 32-bit float in the order of ONNX's definition, and transcendental functions come from `libm`. The
//! supported operators cover published policies: dense, convolutional and recurrent layers, and the operators that exporters
//! add around them.
//!
//! Source: ONNX IR version 8 and later, operator sets 7 to 24, <https://onnx.ai/onnx/operators/>.

mod build;
mod convolution;
mod error;
mod evaluate;
mod indexing;
mod messages;
mod node;
mod operation;
mod protobuf;
mod recurrent;

pub use build::Model;
pub use error::ModelError;
pub use evaluate::Evaluator;

/// Maximum cost of one evaluation: multiply-add operations, plus elements of results.
pub const MAX_OPERATIONS: u64 = 1 << 20;
/// The oldest and the newest version of the default operator set.
const OPERATOR_SETS: [i64; 2] = [7, 24];
/// The supported operators.
const OPERATORS: &[&str] = &[
    "Abs",
    "Add",
    "BatchNormalization",
    "Cast",
    "Clip",
    "Concat",
    "Constant",
    "Conv",
    "Div",
    "Dropout",
    "Elu",
    "Erf",
    "Exp",
    "Flatten",
    "GRU",
    "Gather",
    "Gemm",
    "Identity",
    "LSTM",
    "LayerNormalization",
    "LeakyRelu",
    "MatMul",
    "Max",
    "Min",
    "Mul",
    "Neg",
    "Relu",
    "Reshape",
    "Shape",
    "Sigmoid",
    "Slice",
    "Softmax",
    "Softplus",
    "Split",
    "Sqrt",
    "Squeeze",
    "Sub",
    "Tanh",
    "Transpose",
    "Unsqueeze",
];
