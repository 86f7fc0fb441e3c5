//! Builds a [`Model`] from the messages of a file: one input, one output, steps in order, all shapes known.

use super::indexing::Integers;
use super::messages::{self, DOUBLE, FLOAT, GraphMessage, INT64, TensorMessage, ValueInfo};
use super::operation::Operation;
use super::{MAX_OPERATIONS, ModelError, OPERATOR_SETS};
use std::collections::BTreeMap;

/// A checked model with one input vector and one output vector.
#[derive(Clone, Debug)]
pub struct Model {
    pub(super) values: Vec<Value>,
    pub(super) steps: Vec<Step>,
    pub(super) input: usize,
    pub(super) output: usize,
    metadata: BTreeMap<String, String>,
    operations: u64,
    is_rounded: bool,
}

/// A value that a step reads or writes.
#[derive(Clone, Debug)]
pub(super) struct Value {
    pub(super) len: usize,
    pub(super) constant: Option<Vec<f32>>,
}

/// An operation on values.
#[derive(Clone, Debug)]
pub(super) struct Step {
    pub(super) operation: Operation,
    pub(super) operands: Vec<usize>,
    pub(super) result: usize,
}

/// A named tensor of the graph: a value with a shape. Reshaping makes another tensor with the same value.
#[derive(Clone, Debug)]
pub(super) struct Tensor {
    pub(super) value: usize,
    pub(super) shape: Vec<usize>,
}

/// A model under construction.
#[derive(Debug, Default)]
pub(super) struct Builder {
    pub(super) tensors: BTreeMap<String, Tensor>,
    /// Constant 64-bit integers: shapes and axes.
    pub(super) integers: BTreeMap<String, Integers>,
    pub(super) values: Vec<Value>,
    steps: Vec<Step>,
    operations: u64,
    /// Whether the file had 64-bit floats, which are rounded.
    pub(super) is_rounded: bool,
    /// The version of the operator set.
    pub(super) opset: i64,
}

impl Model {
    /// Reads an ONNX file.
    ///
    /// # Errors
    /// The file is not an ONNX file, uses an unsupported feature, has a weight that is not finite, or is too expensive.
    pub fn read(bytes: &[u8]) -> Result<Self, ModelError> {
        let message = messages::model(bytes)?;
        let graph = message.graph.ok_or(ModelError::NotOnnx)?;
        if !(OPERATOR_SETS[0]..=OPERATOR_SETS[1]).contains(&message.opset) {
            return Err(ModelError::OperatorSet(message.opset));
        }
        let mut builder = Builder { opset: message.opset, ..Builder::default() };
        for tensor in &graph.initializers {
            builder.constant(&tensor.name, tensor)?;
        }
        let input = signature(&graph, &builder)?;
        let input_value = builder.value(element_count(&vector(input, "input")?)?, None)?;
        builder.tensors.insert(input.name.clone(), Tensor { value: input_value, shape: vector(input, "input")? });
        for node in &graph.nodes {
            builder.node(node)?;
        }
        let output = builder.output(&graph)?;
        let is_rounded = builder.is_rounded || input.element_type == DOUBLE;
        let Builder { values, steps, operations, .. } = builder;
        let metadata = message.metadata;
        Ok(Self { values, steps, input: input_value, output, metadata, operations, is_rounded })
    }

    /// The length of the input vector.
    #[must_use]
    pub fn input_len(&self) -> usize {
        self.values[self.input].len
    }

    /// The length of the output vector.
    #[must_use]
    pub fn output_len(&self) -> usize {
        self.values[self.output].len
    }

    /// The file's `metadata_props`.
    #[must_use]
    pub fn metadata(&self) -> &BTreeMap<String, String> {
        &self.metadata
    }

    /// Notes on the file for the user, one sentence each.
    #[must_use]
    pub fn notes(&self) -> Vec<String> {
        let rounded = "the model's 64-bit floats were rounded to 32 bits";
        self.is_rounded.then(|| rounded.to_owned()).into_iter().collect()
    }

    /// The cost of one evaluation: multiply-add operations, plus elements of results.
    #[must_use]
    pub fn operations(&self) -> u64 {
        self.operations
    }
}

/// Finds the graph's only input that is not a weight.
fn signature<'g>(graph: &'g GraphMessage, builder: &Builder) -> Result<&'g ValueInfo, ModelError> {
    let mut inputs = graph.inputs.iter().filter(|input| !builder.tensors.contains_key(&input.name));
    match (inputs.next(), inputs.next(), graph.outputs.len()) {
        (Some(input), None, 1) => Ok(input),
        (first, more, outputs) => {
            let inputs = first.into_iter().chain(more).chain(inputs).count();
            Err(ModelError::Signature(format!(
                "{inputs} inputs and {outputs} outputs; a policy has one of each: export the action alone"
            )))
        }
    }
}

/// The shape of the input: `[n]` or `[1, n]`. A batch dimension without a size counts as 1.
fn vector(info: &ValueInfo, kind: &str) -> Result<Vec<usize>, ModelError> {
    let wrong = |problem: &str| ModelError::Signature(format!("{kind} `{}` {problem}", info.name));
    if ![FLOAT, DOUBLE].contains(&info.element_type) {
        return Err(wrong("does not hold floats"));
    }
    let batch = |index: usize| (index == 0 && info.dims.len() == 2).then_some(1);
    let size = |(index, size): (usize, &Option<i64>)| size.and_then(|size| usize::try_from(size).ok()).or(batch(index));
    let sizes: Option<Vec<usize>> = info.dims.iter().enumerate().map(size).collect();
    match sizes.as_deref() {
        None => Err(wrong("has a dimension without a size: export it with the shape [1, n]")),
        Some([] | [0] | [1, 0]) => Err(wrong("is empty")),
        Some([_] | [1, _]) => Ok(sizes.unwrap_or_default()),
        Some(sizes) => Err(wrong(&format!("has the shape {sizes:?}; a policy has vectors, [n] or [1, n]"))),
    }
}

/// The largest number of dimensions.
pub(super) const MAX_RANK: usize = 8;

/// Number of elements of a tensor of this shape, at most [`MAX_OPERATIONS`].
pub(super) fn element_count(shape: &[usize]) -> Result<usize, ModelError> {
    let count =
        shape.iter().try_fold(1_usize, |count, size| count.checked_mul(*size)).filter(|_| shape.len() <= MAX_RANK);
    match count {
        Some(count) if count as u64 <= MAX_OPERATIONS => Ok(count),
        count => Err(ModelError::TooExpensive(count.map_or(u64::MAX, |count| count as u64))),
    }
}

impl Builder {
    /// Adds a new value.
    pub(super) fn value(&mut self, len: usize, constant: Option<Vec<f32>>) -> Result<usize, ModelError> {
        self.spend(if constant.is_some() { 0 } else { len as u64 + 1 })?;
        self.values.push(Value { len, constant });
        Ok(self.values.len() - 1)
    }

    pub(super) fn spend(&mut self, operations: u64) -> Result<(), ModelError> {
        self.operations = self.operations.saturating_add(operations);
        match self.operations > MAX_OPERATIONS {
            true => Err(ModelError::TooExpensive(self.operations)),
            false => Ok(()),
        }
    }

    /// The numbers of a constant.
    pub(super) fn numbers(&self, tensor: &Tensor) -> Option<&[f32]> {
        self.values[tensor.value].constant.as_deref()
    }

    /// Adds a constant from the file.
    pub(super) fn constant(&mut self, name: &str, tensor: &TensorMessage) -> Result<(), ModelError> {
        self.is_rounded |= tensor.element_type == DOUBLE;
        let shape: Result<Vec<usize>, _> = tensor.dims.iter().map(|size| usize::try_from(*size)).collect();
        let shape = shape.map_err(|_| ModelError::NotOnnx)?;
        if tensor.element_type == INT64 {
            if tensor.integers.is_empty() || element_count(&shape)? != tensor.integers.len() {
                return Err(ModelError::NotOnnx);
            }
            self.integers.insert(name.to_owned(), Integers { shape, values: tensor.integers.clone() });
            return Ok(());
        }
        self.numbers_constant(name, shape, tensor.floats.clone())
    }

    /// Adds a constant.
    pub(super) fn numbers_constant(
        &mut self,
        name: &str,
        shape: Vec<usize>,
        numbers: Vec<f32>,
    ) -> Result<(), ModelError> {
        if numbers.is_empty() || element_count(&shape)? != numbers.len() {
            return Err(ModelError::NotOnnx);
        }
        // A bound of `Clip` may be infinite. Any other constant that is not finite would lead to an answer that is not
        // finite.
        if numbers.len() > 1 && !numbers.iter().all(|number| number.is_finite()) || numbers.iter().any(|x| x.is_nan()) {
            return Err(ModelError::NotFinite(name.to_owned()));
        }
        let value = self.value(numbers.len(), Some(numbers))?;
        self.tensors.insert(name.to_owned(), Tensor { value, shape });
        Ok(())
    }

    /// Adds a step that costs `extra` operations in addition to one per element. Its result has the name `name`.
    pub(super) fn step(
        &mut self,
        name: &str,
        shape: Vec<usize>,
        operands: &[&Tensor],
        extra: u64,
        operation: impl FnOnce() -> Operation,
    ) -> Result<(), ModelError> {
        self.spend(extra)?;
        let result = self.value(element_count(&shape)?, None)?;
        let operands = operands.iter().map(|tensor| tensor.value).collect();
        self.steps.push(Step { operation: operation(), operands, result });
        self.tensors.insert(name.to_owned(), Tensor { value: result, shape });
        Ok(())
    }

    /// The value of the graph's output.
    fn output(&self, graph: &GraphMessage) -> Result<usize, ModelError> {
        let info = &graph.outputs[0];
        let missing = || ModelError::Signature(format!("no node computes output `{}`", info.name));
        let tensor = self.tensors.get(&info.name).ok_or_else(missing)?;
        match tensor.shape.as_slice() {
            [_] | [1, _] => Ok(tensor.value),
            shape => Err(ModelError::Signature(format!(
                "output `{}` has the shape {shape:?}; a policy has vectors, [n] or [1, n]",
                info.name
            ))),
        }
    }
}
