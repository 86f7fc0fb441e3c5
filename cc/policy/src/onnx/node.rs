//! The operators: each node of the graph becomes a step.

use super::build::{Builder, MAX_RANK, Tensor, element_count};
use super::indexing::Integers;
use super::messages::{Attribute, DOUBLE, FLOAT, NodeMessage};
use super::operation::{Binary, Operation, Unary};
use super::{ModelError, OPERATORS};

impl Builder {
    /// Adds the operation of a node.
    pub(super) fn node(&mut self, node: &NodeMessage) -> Result<(), ModelError> {
        if !["", "ai.onnx"].contains(&node.domain.as_str()) {
            return Err(ModelError::Operator(format!("{}.{}", node.domain, node.operator)));
        }
        if !OPERATORS.contains(&node.operator.as_str()) {
            return Err(ModelError::Operator(node.operator.clone()));
        }
        let has_several = node.outputs.iter().skip(1).any(|name| !name.is_empty());
        if node.outputs.is_empty() || has_several && !["GRU", "LSTM", "Split"].contains(&node.operator.as_str()) {
            return Err(wrong(node, "must have one output"));
        }
        if self.integer_node(node)? {
            return Ok(());
        }
        let float = |name: &str, default| node.attributes.get(name).map_or(default, |attribute| attribute.float);
        let unary = match node.operator.as_str() {
            "Abs" => Unary::Abs,
            "Clip" => self.clip(node)?,
            "Elu" => Unary::Elu(float("alpha", 1.0)),
            "Erf" => Unary::Erf,
            "Exp" => Unary::Exp,
            "LeakyRelu" => Unary::LeakyRelu(float("alpha", 0.01)),
            "Neg" => Unary::Neg,
            "Relu" => Unary::Relu,
            "Sigmoid" => Unary::Sigmoid,
            "Softplus" => Unary::Softplus,
            "Sqrt" => Unary::Sqrt,
            "Tanh" => Unary::Tanh,
            "Add" => return self.binary(node, Binary::Add),
            "Div" => return self.binary(node, Binary::Div),
            "Max" => return self.binary(node, Binary::Max),
            "Min" => return self.binary(node, Binary::Min),
            "Mul" => return self.binary(node, Binary::Mul),
            "Sub" => return self.binary(node, Binary::Sub),
            "Gemm" => return self.gemm(node),
            "MatMul" => {
                let [left, right] = [self.operand(node, 0)?, self.operand(node, 1)?];
                return self.mat_mul(node, &node.outputs[0], &left, &right);
            }
            "Constant" => return self.constant_node(node),
            "Concat" => return self.concat(node),
            "BatchNormalization" => return self.batch_normalization(node),
            "Conv" => return self.convolution(node),
            "GRU" => return self.gru(node),
            "LSTM" => return self.lstm(node),
            "Gather" => return self.gather(node),
            "Shape" => return self.shape(node),
            "Slice" => return self.slice(node),
            "Split" => return self.split(node),
            "Transpose" => return self.transpose(node),
            "Softmax" => return self.softmax(node),
            "LayerNormalization" => return self.layer_normalization(node),
            "Cast" | "Dropout" | "Identity" | "Flatten" | "Reshape" | "Squeeze" | "Unsqueeze" => {
                return self.reshaped(node);
            }
            other => return Err(ModelError::Operator(other.to_owned())),
        };
        let operand = self.operand(node, 0)?;
        self.step(&node.outputs[0], operand.shape.clone(), &[&operand], 0, || Operation::Unary(unary))
    }

    pub(super) fn operand(&self, node: &NodeMessage, index: usize) -> Result<Tensor, ModelError> {
        let name = node.inputs.get(index).map_or("", String::as_str);
        let tensor = self.tensors.get(name).cloned();
        tensor.ok_or_else(|| wrong(node, &format!("input {} (`{name}`) is not a known tensor of floats", index + 1)))
    }

    /// The integers of a constant input, or of an attribute in older operator sets.
    pub(super) fn integers(&self, node: &NodeMessage, index: usize, attribute: &str) -> Option<Vec<i64>> {
        let constant =
            node.inputs.get(index).and_then(|name| self.integers.get(name)).map(|integers| integers.values.clone());
        constant.or_else(|| node.attributes.get(attribute).map(|attribute| attribute.integers.clone()))
    }

    fn clip(&self, node: &NodeMessage) -> Result<Unary, ModelError> {
        let bound =
            |index: usize, name: &str, default: f32| match node.inputs.get(index).filter(|name| !name.is_empty()) {
                Some(_) => {
                    let tensor = self.operand(node, index)?;
                    let number = self.numbers(&tensor).and_then(|numbers| numbers.first());
                    number.copied().ok_or_else(|| wrong(node, "bounds that are not constant"))
                }
                None => Ok(node.attributes.get(name).map_or(default, |attribute| attribute.float)),
            };
        let [min, max] = [bound(1, "min", f32::NEG_INFINITY)?, bound(2, "max", f32::INFINITY)?];
        if min <= max { Ok(Unary::Clip(min, max)) } else { Err(wrong(node, "the lower bound is above the upper one")) }
    }

    fn binary(&mut self, node: &NodeMessage, function: Binary) -> Result<(), ModelError> {
        if node.inputs.len() != 2 {
            return Err(wrong(node, "must have two inputs"));
        }
        let [left, right] = [self.operand(node, 0)?, self.operand(node, 1)?];
        self.binary_step(node, &node.outputs[0], &left, &right, function)
    }

    pub(super) fn binary_step(
        &mut self,
        node: &NodeMessage,
        name: &str,
        left: &Tensor,
        right: &Tensor,
        function: Binary,
    ) -> Result<(), ModelError> {
        let shape = broadcast_shape(&left.shape, &right.shape).ok_or_else(|| {
            wrong(node, &format!("the shapes {:?} and {:?} are not compatible", left.shape, right.shape))
        })?;
        let count = element_count(&shape)?;
        let indices = || (0..count).map(|index| [&left.shape, &right.shape].map(|of| operand_index(index, &shape, of)));
        let indices: Vec<[u32; 2]> = indices().collect();
        self.step(name, shape, &[left, right], 0, || Operation::Binary(function, indices))
    }

    /// `A x B + C`, as exporters write dense layers: without scaling, A not transposed.
    fn gemm(&mut self, node: &NodeMessage) -> Result<(), ModelError> {
        let integer = |name: &str| node.attributes.get(name).map_or(0, |attribute| attribute.integer);
        let is_one = |name: &str| node.attributes.get(name).is_none_or(|attribute| attribute.float == 1.0);
        if integer("transA") != 0 || !is_one("alpha") || !is_one("beta") {
            return Err(wrong(node, "transA, alpha and beta are not supported"));
        }
        let (input, mut weights) = (self.operand(node, 0)?, self.operand(node, 1)?);
        if integer("transB") != 0 {
            weights = self.transposed(node, &weights)?;
        }
        if node.inputs.get(2).is_none_or(String::is_empty) {
            return self.mat_mul(node, &node.outputs[0], &input, &weights);
        }
        let bias = self.operand(node, 2)?;
        let name = format!("{} before its bias", node.outputs[0]);
        self.mat_mul(node, &name, &input, &weights)?;
        let product = self.tensors[&name].clone();
        self.binary_step(node, &node.outputs[0], &product, &bias, Binary::Add)
    }

    /// The transpose of a constant matrix.
    fn transposed(&mut self, node: &NodeMessage, matrix: &Tensor) -> Result<Tensor, ModelError> {
        let (Some(numbers), [rows, columns]) = (self.numbers(matrix), &matrix.shape[..]) else {
            return Err(wrong(node, "transB needs a constant matrix"));
        };
        let transposed: Vec<f32> =
            (0..numbers.len()).map(|index| numbers[index % rows * columns + index / rows]).collect();
        let shape = vec![*columns, *rows];
        let value = self.value(transposed.len(), Some(transposed))?;
        Ok(Tensor { value, shape })
    }

    pub(super) fn mat_mul(
        &mut self,
        node: &NodeMessage,
        name: &str,
        left: &Tensor,
        right: &Tensor,
    ) -> Result<(), ModelError> {
        let (mut shape, inner, columns) = match (&left.shape[..], &right.shape[..]) {
            ([inner], [rows, columns]) if inner == rows => (vec![], *inner, *columns),
            ([rows, inner], [others, columns]) if inner == others => (vec![*rows], *inner, *columns),
            _ => return Err(wrong(node, &format!("matrices {:?} and {:?}", left.shape, right.shape))),
        };
        shape.push(columns);
        let extra = (element_count(&shape)? as u64).saturating_mul(inner as u64);
        self.step(name, shape, &[left, right], extra, || Operation::MatMul { inner, columns })
    }

    fn constant_node(&mut self, node: &NodeMessage) -> Result<(), ModelError> {
        let (name, attributes) = (&node.outputs[0], &node.attributes);
        if let Some(tensor) = attributes.get("value").and_then(|value| value.tensor.as_ref()) {
            return self.constant(name, tensor);
        }
        if let Some(Attribute { float, .. }) = attributes.get("value_float") {
            return self.numbers_constant(name, Vec::new(), vec![*float]);
        }
        if let Some(Attribute { floats, .. }) = attributes.get("value_floats") {
            return self.numbers_constant(name, vec![floats.len()], floats.clone());
        }
        let scalar = |attribute: &Attribute| Integers { shape: Vec::new(), values: vec![attribute.integer] };
        let list = || attributes.get("value_ints").map(|attribute| Integers::list(attribute.integers.clone()));
        let integers = attributes.get("value_int").map(scalar).or_else(list);
        self.integers.insert(name.clone(), integers.ok_or_else(|| wrong(node, "has no numeric value"))?);
        Ok(())
    }

    fn concat(&mut self, node: &NodeMessage) -> Result<(), ModelError> {
        let tensors: Vec<Tensor> =
            (0..node.inputs.len()).map(|index| self.operand(node, index)).collect::<Result<_, _>>()?;
        let shapes = || tensors.iter().map(|tensor| &tensor.shape);
        let rank = tensors.first().map_or(0, |tensor| tensor.shape.len());
        let axis = self.axis(node, rank, 0)?;
        let without_axis = |shape: &Vec<usize>| [&shape[..axis], &shape[axis + 1..]].concat();
        if shapes().any(|shape| shape.len() != rank || without_axis(shape) != without_axis(&tensors[0].shape)) {
            return Err(wrong(node, "the shapes of the inputs are not compatible"));
        }
        let mut shape = tensors[0].shape.clone();
        shape[axis] = shapes().map(|shape| shape[axis]).sum();
        let lens: Vec<usize> = shapes().map(|shape| shape[axis..].iter().product()).collect();
        let operands: Vec<&Tensor> = tensors.iter().collect();
        self.step(&node.outputs[0], shape, &operands, 0, || Operation::Concat(lens))
    }

    fn softmax(&mut self, node: &NodeMessage) -> Result<(), ModelError> {
        let tensor = self.operand(node, 0)?;
        let len = self.last_axis(node, &tensor, if self.opset < 13 { 1 } else { -1 })?;
        self.step(&node.outputs[0], tensor.shape.clone(), &[&tensor], 0, || Operation::Softmax(len))
    }

    fn layer_normalization(&mut self, node: &NodeMessage) -> Result<(), ModelError> {
        let tensor = self.operand(node, 0)?;
        let len = self.last_axis(node, &tensor, -1)?;
        let epsilon = node.attributes.get("epsilon").map_or(1e-5, |attribute| attribute.float);
        let names = ["normalised", "scaled"].map(|kind| format!("{} {kind}", node.outputs[0]));
        self.step(&names[0], tensor.shape.clone(), &[&tensor], 0, || Operation::Normalise(len, epsilon))?;
        let (mut tensor, scale) = (self.tensors[&names[0]].clone(), self.operand(node, 1)?);
        let bias = node.inputs.get(2).filter(|name| !name.is_empty()).map(|_| self.operand(node, 2)).transpose()?;
        let Some(bias) = bias else { return self.binary_step(node, &node.outputs[0], &tensor, &scale, Binary::Mul) };
        self.binary_step(node, &names[1], &tensor, &scale, Binary::Mul)?;
        tensor = self.tensors[&names[1]].clone();
        self.binary_step(node, &node.outputs[0], &tensor, &bias, Binary::Add)
    }

    /// The length of the last axis, which must be the axis of the node.
    fn last_axis(&self, node: &NodeMessage, tensor: &Tensor, default: i64) -> Result<usize, ModelError> {
        match self.axis(node, tensor.shape.len(), default)? + 1 == tensor.shape.len() {
            true => Ok(tensor.shape.last().copied().unwrap_or_default()),
            false => Err(wrong(node, "only the last axis is supported")),
        }
    }

    /// The attribute `axis` of tensors with `rank` dimensions.
    pub(super) fn axis(&self, node: &NodeMessage, rank: usize, default: i64) -> Result<usize, ModelError> {
        let axis = node.attributes.get("axis").map_or(default, |attribute| attribute.integer);
        let axis = if axis < 0 { axis.saturating_add(rank as i64) } else { axis };
        usize::try_from(axis).ok().filter(|axis| *axis < rank).ok_or_else(|| wrong(node, "there is no such axis"))
    }

    /// The same numbers with another shape.
    fn reshaped(&mut self, node: &NodeMessage) -> Result<(), ModelError> {
        let tensor = self.operand(node, 0)?;
        let shape = match node.operator.as_str() {
            "Cast" if node.attributes.get("to").is_none_or(|to| ![FLOAT, DOUBLE].contains(&to.integer)) => {
                return Err(wrong(node, "only to floats"));
            }
            "Flatten" => {
                let axis = node.attributes.get("axis").map_or(1, |attribute| attribute.integer);
                let axis = usize::try_from(axis).ok().filter(|axis| *axis <= tensor.shape.len());
                let axis = axis.ok_or_else(|| wrong(node, "there is no such axis"))?;
                [&tensor.shape[..axis], &tensor.shape[axis..]].map(|part| part.iter().product()).to_vec()
            }
            "Reshape" => {
                let given = self.integers(node, 1, "shape").ok_or_else(|| wrong(node, "the shape is not constant"))?;
                reshape(&tensor.shape, &given).ok_or_else(|| wrong(node, "the shape does not fit"))?
            }
            "Squeeze" => squeeze(&tensor.shape, self.integers(node, 1, "axes").as_deref())
                .ok_or_else(|| wrong(node, "the axes do not fit"))?,
            "Unsqueeze" => self
                .integers(node, 1, "axes")
                .and_then(|axes| unsqueeze(&tensor.shape, &axes))
                .ok_or_else(|| wrong(node, "the axes do not fit"))?,
            _ => tensor.shape.clone(),
        };
        self.tensors.insert(node.outputs[0].clone(), Tensor { value: tensor.value, shape });
        Ok(())
    }
}

pub(super) fn wrong(node: &NodeMessage, message: &str) -> ModelError {
    ModelError::Node(node.operator.clone(), message.to_owned())
}

/// The shape of the result of two operands by ONNX's multidirectional broadcasting.
fn broadcast_shape(left: &[usize], right: &[usize]) -> Option<Vec<usize>> {
    let rank = left.len().max(right.len());
    let size = |shape: &[usize], axis: usize| (axis + shape.len()).checked_sub(rank).map_or(1, |axis| shape[axis]);
    let sizes = (0..rank).map(|axis| match [size(left, axis), size(right, axis)] {
        [left, right] if left == right || right == 1 => Some(left),
        [1, right] => Some(right),
        _ => None,
    });
    sizes.collect()
}

/// The index in an operand of the shape `of` that belongs to the element `index` of a result of the shape `shape`.
fn operand_index(index: usize, shape: &[usize], of: &[usize]) -> u32 {
    let (mut rest, mut stride, mut result) = (index, 1, 0);
    for (axis, size) in shape.iter().enumerate().rev() {
        let Some(own_axis) = (axis + of.len()).checked_sub(shape.len()) else { break };
        if of[own_axis] > 1 {
            result += rest % size * stride;
        }
        rest /= size;
        stride *= of[own_axis];
    }
    result as u32
}

/// ONNX's `Reshape`: 0 keeps a size, -1 is the remaining size.
fn reshape(shape: &[usize], given: &[i64]) -> Option<Vec<usize>> {
    let count: usize = shape.iter().product();
    let kept = given.iter().enumerate().map(|(axis, size)| match size {
        0 => shape.get(axis).copied(),
        -1 => Some(1),
        size => usize::try_from(*size).ok(),
    });
    let mut sizes: Vec<usize> = kept.collect::<Option<_>>()?;
    let known = sizes.iter().try_fold(1_usize, |product, size| product.checked_mul(*size))?;
    if let Some(axis) = given.iter().position(|size| *size == -1) {
        sizes[axis] = count.checked_div(known)?;
    }
    (element_count(&sizes).ok()? == count).then_some(sizes)
}

/// The shape without these axes of size 1, or without all of them.
fn squeeze(shape: &[usize], axes: Option<&[i64]>) -> Option<Vec<usize>> {
    let axes = match axes {
        Some(axes) => absolute(axes, shape.len())?,
        None => (0..shape.len()).filter(|axis| shape[*axis] == 1).collect(),
    };
    let fits = axes.iter().all(|axis| shape[*axis] == 1);
    fits.then(|| (0..shape.len()).filter(|axis| !axes.contains(axis)).map(|axis| shape[axis]).collect())
}

/// The shape with axes of size 1 at these positions of the result.
fn unsqueeze(shape: &[usize], axes: &[i64]) -> Option<Vec<usize>> {
    let rank = shape.len().checked_add(axes.len()).filter(|rank| *rank <= MAX_RANK)?;
    let axes = absolute(axes, rank)?;
    let mut sizes = shape.iter().copied();
    (0..rank).map(|axis| if axes.contains(&axis) { Some(1) } else { sizes.next() }).collect()
}

/// Distinct axes, counted from the front.
fn absolute(axes: &[i64], rank: usize) -> Option<Vec<usize>> {
    let mut list = Vec::new();
    for axis in axes {
        let axis = usize::try_from(if *axis < 0 { axis.checked_add(rank as i64)? } else { *axis }).ok()?;
        if axis >= rank || list.contains(&axis) {
            return None;
        }
        list.push(axis);
    }
    Some(list)
}
