//! Operators that pick elements (Slice, Gather, Split, Transpose), and the constant integers of which shapes are made.

use super::ModelError;
use super::build::{Builder, MAX_RANK, Tensor, element_count};
use super::messages::NodeMessage;
use super::node::wrong;
use super::operation::Operation;

/// Constant 64-bit integers: shapes, axes, indices.
#[derive(Clone, Debug)]
pub(super) struct Integers {
    pub(super) shape: Vec<usize>,
    pub(super) values: Vec<i64>,
}

impl Integers {
    /// A list.
    pub(super) fn list(values: Vec<i64>) -> Self {
        Self { shape: vec![values.len()], values }
    }
}

impl Builder {
    /// Adds derived integers. They count as elements of a result.
    fn derived(&mut self, name: &str, integers: Integers) -> Result<(), ModelError> {
        self.spend(integers.values.len() as u64 + 1)?;
        self.integers.insert(name.to_owned(), integers);
        Ok(())
    }

    /// Adds a node that works on integers. Returns false if its first input is not an integer constant.
    pub(super) fn integer_node(&mut self, node: &NodeMessage) -> Result<bool, ModelError> {
        let name = &node.outputs[0];
        let inputs: Option<Vec<Integers>> = match node.operator.as_str() {
            "Concat" => node.inputs.iter().map(|input| self.integers.get(input).cloned()).collect(),
            "Cast" | "Gather" | "Identity" | "Slice" | "Squeeze" | "Unsqueeze" => {
                node.inputs.first().and_then(|input| self.integers.get(input)).map(|first| vec![first.clone()])
            }
            _ => None,
        };
        let Some(inputs) = inputs.filter(|inputs| !inputs.is_empty()) else { return Ok(false) };
        let result = match node.operator.as_str() {
            "Concat" => Integers::list(inputs.iter().flat_map(|integers| integers.values.iter().copied()).collect()),
            "Gather" => {
                let indices = self.constant_indices(node, inputs[0].values.len())?;
                Integers { values: indices.1.iter().map(|index| inputs[0].values[*index]).collect(), shape: indices.0 }
            }
            "Slice" => {
                let [(_, positions)] = &self.slices(node, &[inputs[0].values.len()])?[..] else {
                    return Err(wrong(node, "a slice of integers has one axis"));
                };
                Integers::list(positions.iter().map(|index| inputs[0].values[*index]).collect())
            }
            "Squeeze" if inputs[0].values.len() == 1 => Integers { shape: Vec::new(), ..inputs[0].clone() },
            "Unsqueeze" => Integers::list(inputs[0].values.clone()),
            _ => inputs[0].clone(),
        };
        self.derived(name, result).map(|()| true)
    }

    /// Adds a tensor's shape, as integers.
    pub(super) fn shape(&mut self, node: &NodeMessage) -> Result<(), ModelError> {
        let rank = |name: &str, default| node.attributes.get(name).map_or(default, |attribute| attribute.integer);
        let tensor = self.operand(node, 0)?;
        let len = tensor.shape.len();
        let place = |at: i64| (if at < 0 { at.saturating_add(len as i64) } else { at }).clamp(0, len as i64) as usize;
        let (start, end) = (place(rank("start", 0)), place(rank("end", len as i64)));
        let sizes = tensor.shape.get(start..end).unwrap_or_default();
        self.derived(&node.outputs[0], Integers::list(sizes.iter().map(|size| *size as i64).collect()))
    }

    /// Slice: a range of elements along each axis.
    pub(super) fn slice(&mut self, node: &NodeMessage) -> Result<(), ModelError> {
        let mut tensor = self.operand(node, 0)?;
        for (axis, positions) in self.slices(node, &tensor.shape)? {
            tensor = self.picked(&node.outputs[0], &tensor, axis, &positions)?;
        }
        self.tensors.insert(node.outputs[0].clone(), tensor);
        Ok(())
    }

    /// The sliced axes for a tensor of this shape, each with its positions.
    fn slices(&self, node: &NodeMessage, shape: &[usize]) -> Result<Vec<(usize, Vec<usize>)>, ModelError> {
        let list = |index, name: &str| self.integers(node, index, name);
        let (Some(starts), Some(ends)) = (list(1, "starts"), list(2, "ends")) else {
            return Err(wrong(node, "starts or ends are not constant"));
        };
        if [3, 4].iter().any(|index| {
            node.inputs.get(*index).is_some_and(|name| !name.is_empty() && !self.integers.contains_key(name))
        }) {
            return Err(wrong(node, "axes or steps are not constant"));
        }
        let axes = list(3, "axes").unwrap_or_else(|| (0..starts.len() as i64).collect());
        let steps = list(4, "steps").unwrap_or_else(|| vec![1; starts.len()]);
        if [ends.len(), axes.len(), steps.len()] != [starts.len(); 3] || starts.len() > MAX_RANK {
            return Err(wrong(node, "starts, ends, axes and steps differ in number"));
        }
        let slice = |index: usize| {
            let axis = place(axes[index], shape.len()).ok_or_else(|| wrong(node, "there is no such axis"))?;
            let positions = range(starts[index], ends[index], steps[index], shape[axis]);
            Ok((axis, positions.ok_or_else(|| wrong(node, "the slice is empty"))?))
        };
        (0..starts.len()).map(slice).collect()
    }

    /// Gather: elements at constant positions along an axis.
    pub(super) fn gather(&mut self, node: &NodeMessage) -> Result<(), ModelError> {
        let tensor = self.operand(node, 0)?;
        let axis = self.axis(node, tensor.shape.len(), 0)?;
        let (of_indices, positions) = self.constant_indices(node, tensor.shape[axis])?;
        let picked = self.picked(&node.outputs[0], &tensor, axis, &positions)?;
        let shape = [&tensor.shape[..axis], &of_indices, &tensor.shape[axis + 1..]].concat();
        element_count(&shape)?;
        self.tensors.insert(node.outputs[0].clone(), Tensor { shape, ..picked });
        Ok(())
    }

    /// The shape of a node's constant second input, and its positions in an axis of `size` elements.
    fn constant_indices(&self, node: &NodeMessage, size: usize) -> Result<(Vec<usize>, Vec<usize>), ModelError> {
        let indices = node.inputs.get(1).and_then(|name| self.integers.get(name));
        let indices = indices.ok_or_else(|| wrong(node, "the indices are not constant"))?;
        let places: Option<Vec<usize>> = indices.values.iter().map(|index| place(*index, size)).collect();
        match places {
            Some(places) if !places.is_empty() => Ok((indices.shape.clone(), places)),
            _ => Err(wrong(node, "there is no such index")),
        }
    }

    /// Split: parts along an axis, one output each.
    pub(super) fn split(&mut self, node: &NodeMessage) -> Result<(), ModelError> {
        let tensor = self.operand(node, 0)?;
        let axis = self.axis(node, tensor.shape.len(), 0)?;
        let (size, count) = (tensor.shape[axis], node.outputs.len());
        let sizes = match self.integers(node, 1, "split") {
            Some(sizes) => sizes.iter().map(|size| usize::try_from(*size).ok()).collect(),
            None if node.inputs.get(1).is_some_and(|name| !name.is_empty()) => None,
            // The last part may be smaller (operator set 18).
            None => Some(
                (0..count)
                    .map(|part| size.div_ceil(count).min(size - (part * size.div_ceil(count)).min(size)))
                    .collect(),
            ),
        };
        let sizes: Vec<usize> = sizes.ok_or_else(|| wrong(node, "the sizes of the parts are not constant"))?;
        let total = sizes.iter().try_fold(0_usize, |total, part| total.checked_add(*part));
        if sizes.len() != count || total != Some(size) || sizes.contains(&0) {
            return Err(wrong(node, &format!("{size} elements cannot be split into {count} parts")));
        }
        let mut start = 0;
        for (name, part) in node.outputs.iter().zip(sizes) {
            let positions: Vec<usize> = (start..start + part).collect();
            start += part;
            if !name.is_empty() {
                let picked = self.picked(name, &tensor, axis, &positions)?;
                self.tensors.insert(name.clone(), picked);
            }
        }
        Ok(())
    }

    /// Transpose: the axes in a different order.
    pub(super) fn transpose(&mut self, node: &NodeMessage) -> Result<(), ModelError> {
        let tensor = self.operand(node, 0)?;
        let rank = tensor.shape.len();
        let order = node.attributes.get("perm").map(|attribute| attribute.integers.clone());
        let order = order.unwrap_or_else(|| (0..rank as i64).rev().collect());
        let order: Option<Vec<usize>> = order.iter().map(|axis| place(*axis, rank)).collect();
        let order = order.filter(|order| (0..rank).all(|axis| order.contains(&axis)) && order.len() == rank);
        let order = order.ok_or_else(|| wrong(node, "the axes do not fit"))?;
        let shape: Vec<usize> = order.iter().map(|axis| tensor.shape[*axis]).collect();
        let of_result = shape.clone();
        let index = move |index: usize| {
            let (mut rest, mut places) = (index, vec![0; rank]);
            for axis in (0..rank).rev() {
                places[order[axis]] = rest % of_result[axis];
                rest /= of_result[axis];
            }
            places
        };
        let own = tensor.shape.clone();
        let flat =
            move |at: usize| index(at).iter().zip(&own).fold(0, |flat, (place, size)| flat * size + place) as u32;
        let count = element_count(&shape)?;
        let operation = || Operation::Pick((0..count).map(flat).collect());
        self.step(&node.outputs[0], shape, &[&tensor], 0, operation)
    }

    /// The elements of a tensor at these positions along an axis.
    pub(super) fn picked(
        &mut self,
        name: &str,
        tensor: &Tensor,
        axis: usize,
        positions: &[usize],
    ) -> Result<Tensor, ModelError> {
        let mut shape = tensor.shape.clone();
        shape[axis] = positions.len();
        let (count, size) = (element_count(&shape)?, tensor.shape[axis]);
        let inner: usize = tensor.shape[axis + 1..].iter().product();
        let index = |index: usize| {
            let (outer, position) = (index / inner / positions.len(), index / inner % positions.len());
            ((outer * size + positions[position]) * inner + index % inner) as u32
        };
        self.step(name, shape, &[tensor], 0, || Operation::Pick((0..count).map(index).collect()))?;
        Ok(self.tensors[name].clone())
    }
}

/// A position or an axis, which may be counted from the end.
fn place(at: i64, size: usize) -> Option<usize> {
    let at = if at < 0 { at.checked_add(size as i64)? } else { at };
    usize::try_from(at).ok().filter(|at| *at < size)
}

/// The positions of a slice of an axis, as ONNX and NumPy define them; `None` if the slice is empty.
fn range(start: i64, end: i64, step: i64, size: usize) -> Option<Vec<usize>> {
    let size = i64::try_from(size).ok()?;
    let bounds = if step > 0 { (0, size) } else { (-1, size - 1) };
    let limited = |at: i64| (if at < 0 { at.saturating_add(size) } else { at }).clamp(bounds.0, bounds.1);
    let (start, end, mut positions) = (limited(start), limited(end), Vec::new());
    let mut at = start;
    while step != 0 && (step > 0 && at < end || step < 0 && at > end) {
        positions.push(at as usize);
        at = at.saturating_add(step);
    }
    (!positions.is_empty()).then_some(positions)
}
