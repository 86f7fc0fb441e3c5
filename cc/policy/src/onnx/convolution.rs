//! Conv and BatchNormalization, for any number of dimensions.

use super::ModelError;
use super::build::{Builder, Tensor, element_count};
use super::messages::NodeMessage;
use super::node::wrong;
use super::operation::{Binary, Operation};

/// Maximum stride, padding or dilation.
const MAX_STEP: usize = 1 << 16;

/// How a kernel moves along one dimension.
#[derive(Clone, Copy, Debug)]
struct Dimension {
    input: usize,
    kernel: usize,
    output: usize,
    stride: usize,
    dilation: usize,
    padding: usize,
}

impl Dimension {
    /// The input position for an output position and a kernel position; `None` in the padding.
    fn place(&self, output: usize, kernel: usize) -> Option<usize> {
        (output * self.stride + kernel * self.dilation).checked_sub(self.padding).filter(|place| *place < self.input)
    }
}

/// All positions in an array with these sizes, the last dimension fastest.
fn places(sizes: &[usize]) -> impl Iterator<Item = Vec<usize>> + '_ {
    let count: usize = sizes.iter().product();
    (0..count).map(move |mut rest| {
        let mut places = vec![0; sizes.len()];
        for (place, size) in places.iter_mut().zip(sizes).rev() {
            *place = rest % size;
            rest /= size;
        }
        places
    })
}

impl Builder {
    /// Conv: sums over channels, then over the kernel, and a bias.
    pub(super) fn convolution(&mut self, node: &NodeMessage) -> Result<(), ModelError> {
        let [input, weights] = [self.operand(node, 0)?, self.operand(node, 1)?];
        let group = node.attributes.get("group").map_or(Some(1), |group| usize::try_from(group.integer).ok());
        let ([batch, channels, _, ..], [outputs, per_group, _, ..], Some(group @ 1..)) =
            (&input.shape[..], &weights.shape[..], group)
        else {
            return Err(wrong(node, &format!("shapes {:?} and {:?}", input.shape, weights.shape)));
        };
        let fits = input.shape.len() == weights.shape.len() && per_group.checked_mul(group) == Some(*channels);
        if !fits || outputs % group != 0 {
            return Err(wrong(node, &format!("shapes {:?} and {:?}, {group} groups", input.shape, weights.shape)));
        }
        let dimensions = dimensions(node, &input.shape[2..], &weights.shape[2..])?;
        let sizes: Vec<usize> = dimensions.iter().map(|dimension| dimension.output).collect();
        let shape = [&[*batch, *outputs][..], &sizes].concat();
        let kernel = weights.shape[1..].iter().product::<usize>() as u64;
        let extra = (element_count(&shape)? as u64).saturating_mul(kernel);
        let operation = || products(&shape, &input.shape, &weights.shape, group, &dimensions);
        if node.inputs.get(2).is_none_or(String::is_empty) {
            return self.step(&node.outputs[0], shape.clone(), &[&input, &weights], extra, operation);
        }
        let name = format!("{} before its bias", node.outputs[0]);
        self.step(&name, shape.clone(), &[&input, &weights], extra, operation)?;
        let bias = self.operand(node, 2)?;
        let bias = self.per_channel(node, &bias, *outputs, shape.len())?;
        let sums = self.tensors[&name].clone();
        self.binary_step(node, &node.outputs[0], &sums, &bias, Binary::Add)
    }

    /// BatchNormalization with trained statistics: a factor and a summand per channel.
    pub(super) fn batch_normalization(&mut self, node: &NodeMessage) -> Result<(), ModelError> {
        let integer = |name: &str, default| node.attributes.get(name).map_or(default, |attribute| attribute.integer);
        if integer("training_mode", 0) != 0 || integer("spatial", 1) != 1 {
            return Err(wrong(node, "is in training mode, or not per channel: export the model in evaluation mode"));
        }
        let tensor = self.operand(node, 0)?;
        let [_, channels, ..] = tensor.shape[..] else { return Err(wrong(node, "a tensor without channels")) };
        let constant = |index: usize| {
            let operand = self.operand(node, index)?;
            let numbers = self.numbers(&operand).filter(|numbers| numbers.len() == channels);
            let numbers =
                numbers.ok_or_else(|| wrong(node, "scale, bias, mean and variance are constants per channel"));
            numbers.map(|numbers| numbers.iter().map(|number| f64::from(*number)).collect::<Vec<f64>>())
        };
        let [scale, bias, mean, variance] = [constant(1)?, constant(2)?, constant(3)?, constant(4)?];
        let epsilon = node.attributes.get("epsilon").map_or(1e-5, |attribute| attribute.float);
        let factor = |channel: usize| scale[channel] / libm::sqrt(variance[channel] + f64::from(epsilon));
        let factors: Vec<f32> = (0..channels).map(|channel| factor(channel) as f32).collect();
        let summand = |channel: usize| (bias[channel] - mean[channel] * factor(channel)) as f32;
        let summands: Vec<f32> = (0..channels).map(summand).collect();
        let names = ["factors", "summands", "scaled"].map(|kind| format!("{} {kind}", node.outputs[0]));
        let rank = tensor.shape.len();
        self.numbers_constant(&names[0], vec![channels], factors)?;
        self.numbers_constant(&names[1], vec![channels], summands)?;
        let [factors, summands] = [0, 1].map(|index: usize| self.tensors[&names[index]].clone());
        let factors = self.per_channel(node, &factors, channels, rank)?;
        self.binary_step(node, &names[2], &tensor, &factors, Binary::Mul)?;
        let scaled = self.tensors[&names[2]].clone();
        let summands = self.per_channel(node, &summands, channels, rank)?;
        self.binary_step(node, &node.outputs[0], &scaled, &summands, Binary::Add)
    }

    /// A vector with one element per channel, shaped for tensors of this many dimensions.
    fn per_channel(
        &self,
        node: &NodeMessage,
        vector: &Tensor,
        channels: usize,
        rank: usize,
    ) -> Result<Tensor, ModelError> {
        let shape = [&[channels][..], &vec![1; rank - 2]].concat();
        match vector.shape == [channels] {
            true => Ok(Tensor { value: vector.value, shape }),
            false => Err(wrong(node, &format!("{:?} is not a vector of {channels} channels", vector.shape))),
        }
    }
}

/// The dimensions of a convolution, from the node's attributes.
fn dimensions(node: &NodeMessage, input: &[usize], kernel: &[usize]) -> Result<Vec<Dimension>, ModelError> {
    let padding = node.attributes.get("auto_pad").map_or("", |attribute| attribute.text.as_str());
    if !["", "NOTSET", "VALID"].contains(&padding) {
        return Err(wrong(node, "`auto_pad` is not supported: give `pads`"));
    }
    let rank = input.len();
    let list = |name: &str, len: usize, default: usize| {
        let given =
            node.attributes.get(name).map(|attribute| attribute.integers.as_slice()).filter(|it| !it.is_empty());
        let Some(given) = given else { return Ok(vec![default; len]) };
        let sizes: Option<Vec<usize>> = given.iter().map(|size| usize::try_from(*size).ok()).collect();
        let sizes = sizes.filter(|sizes| sizes.len() == len && sizes.iter().all(|size| *size <= MAX_STEP));
        sizes.ok_or_else(|| wrong(node, &format!("`{name}` does not fit {rank} dimensions")))
    };
    let [strides, dilations, pads] =
        [list("strides", rank, 1)?, list("dilations", rank, 1)?, list("pads", 2 * rank, 0)?];
    let dimension = |axis: usize| {
        let (stride, dilation) = (strides[axis], dilations[axis]);
        let reach = (kernel[axis].checked_sub(1)?).checked_mul(dilation)?.checked_add(1)?;
        let padded = input[axis] + pads[axis] + pads[axis + rank];
        let output = padded.checked_sub(reach)?.checked_div(stride)? + 1;
        let (input, kernel, padding) = (input[axis], kernel[axis], pads[axis]);
        (dilation > 0).then_some(Dimension { input, kernel, output, stride, dilation, padding })
    };
    (0..rank).map(dimension).collect::<Option<_>>().ok_or_else(|| wrong(node, "the kernel does not fit the input"))
}

/// The number of products in a convolution of tensors with these shapes.
fn products(shape: &[usize], input: &[usize], weights: &[usize], group: usize, dimensions: &[Dimension]) -> Operation {
    let kernel: Vec<usize> = dimensions.iter().map(|dimension| dimension.kernel).collect();
    let (of_channel, of_kernel) = (input[2..].iter().product::<usize>(), kernel.iter().product::<usize>());
    let (per_group, outputs) = (weights[1], weights[0]);
    let (mut pairs, mut ends) = (Vec::new(), Vec::new());
    for at in places(shape) {
        let (batch, output) = (at[0], at[1]);
        for channel in 0..per_group {
            let own = output / (outputs / group) * per_group + channel;
            for (index, in_kernel) in places(&kernel).enumerate() {
                let axes = dimensions.iter().zip(&at[2..]).zip(&in_kernel);
                let mut place = axes
                    .map(|((dimension, output), kernel)| Some((dimension.place(*output, *kernel)?, dimension.input)));
                let flat = place.try_fold(0, |flat, it| it.map(|(place, size)| flat * size + place));
                let Some(flat) = flat else { continue };
                let weight = (output * per_group + channel) * of_kernel + index;
                pairs.push([((batch * input[1] + own) * of_channel + flat) as u32, weight as u32]);
            }
        }
        ends.push(pairs.len() as u32);
    }
    Operation::Products { pairs, ends }
}
