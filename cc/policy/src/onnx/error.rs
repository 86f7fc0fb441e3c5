//! Reasons for refusing a model.

use std::fmt;

/// The reason for refusing a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ModelError {
    /// The bytes are not an ONNX file, or only a part of one.
    NotOnnx,
    /// Weights are stored in another file.
    ExternalData,
    /// A tensor of this name has elements that are neither floats nor, as a shape, 64-bit integers.
    ElementType(String),
    /// The operator set's version.
    OperatorSet(i64),
    /// An operator that is not supported.
    Operator(String),
    /// A node whose inputs or attributes are not supported: its operator, and the problem.
    Node(String, String),
    /// The model does not have exactly one input and one output, or they are not vectors of fixed size.
    Signature(String),
    /// A weight in the tensor of this name is not a finite number.
    NotFinite(String),
    /// The cost of one evaluation, in operations or elements, which is above [`super::MAX_OPERATIONS`].
    TooExpensive(u64),
    /// An error in the metadata: the key, and the problem.
    Metadata(&'static str, String),
}

impl fmt::Display for ModelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotOnnx => f.write_str("not an ONNX model, or only a part of one: export it again"),
            Self::ExternalData => f.write_str("the weights are in another file: save the model with its weights"),
            Self::ElementType(name) => {
                write!(f, "the elements of tensor `{name}` are neither floats nor 64-bit integers")
            }
            Self::OperatorSet(version) => {
                let [min, max] = super::OPERATOR_SETS;
                write!(f, "operator set {version}: export with one from {min} to {max}")
            }
            Self::Operator(name) => {
                write!(f, "unsupported operator `{name}`; supported: {}", super::OPERATORS.join(", "))
            }
            Self::Node(operator, message) => write!(f, "operator `{operator}`: {message}"),
            Self::Signature(message) => f.write_str(message),
            Self::NotFinite(name) => write!(f, "tensor `{name}` contains NaN or infinity"),
            Self::TooExpensive(operations) => {
                write!(f, "one decision takes {operations} operations; at most {} are allowed", super::MAX_OPERATIONS)
            }
            Self::Metadata(key, message) => write!(f, "metadata `{key}`: {message}"),
        }
    }
}

impl std::error::Error for ModelError {}
