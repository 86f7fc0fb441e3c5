//! GRU (Cho et al. 2014) in one direction, unrolled over its sequence.

use super::ModelError;
use super::build::{Builder, Tensor, element_count};
use super::messages::NodeMessage;
use super::node::wrong;
use super::operation::{Binary, Operation, Unary};

/// Gates in the order of ONNX's weights.
const GATES: [&str; 3] = ["update", "reset", "hidden"];

/// The gates' weights of the input and of the state, and their biases.
struct Weights {
    input: [Tensor; 3],
    state: [Tensor; 3],
    input_bias: [Tensor; 3],
    state_bias: [Tensor; 3],
    /// The constant 1.
    one: Tensor,
    /// The prefix of the names of the node's values. It is short, even if the file's names are long.
    prefix: String,
}

impl Builder {
    /// GRU over a sequence with a batch size of 1.
    pub(super) fn gru(&mut self, node: &NodeMessage) -> Result<(), ModelError> {
        let attribute = |name: &str| node.attributes.get(name);
        let direction = attribute("direction").map_or("forward", |it| it.text.as_str());
        let has_own = attribute("activations").is_none_or(|it| it.texts == ["Sigmoid", "Tanh"]);
        let is_plain = has_own && attribute("clip").is_none();
        let is_given = |index: usize| node.inputs.get(index).is_some_and(|name| !name.is_empty());
        if !is_plain || direction != "forward" || attribute("layout").is_some_and(|it| it.integer != 0) || is_given(4) {
            return Err(wrong(
                node,
                "only the forward direction, default activations, whole sequences and layout 0 are supported",
            ));
        }
        let tensor = self.operand(node, 0)?;
        let hidden = attribute("hidden_size").and_then(|size| usize::try_from(size.integer).ok()).unwrap_or_default();
        let [steps, 1, inputs] = tensor.shape[..] else {
            return Err(wrong(node, &format!("a sequence of the shape {:?}, not [steps, 1, n]", tensor.shape)));
        };
        let weights = self.gru_weights(node, inputs, hidden)?;
        let mut state = match is_given(5) {
            true => self.operand(node, 5).and_then(|state| match state.shape == [1, 1, hidden] {
                true => Ok(Tensor { shape: vec![1, hidden], ..state }),
                false => Err(wrong(node, &format!("an initial state of the shape {:?}", state.shape))),
            })?,
            false => {
                let name = format!("{} initial state", weights.prefix);
                self.named_constant(&name, vec![1, hidden], vec![0.0; hidden])?
            }
        };
        let linear_before_reset = attribute("linear_before_reset").is_some_and(|it| it.integer != 0);
        let mut states = Vec::new();
        for step in 0..steps {
            let row = self.picked(&name(&weights, step, "input"), &tensor, 0, &[step])?;
            let row = Tensor { shape: vec![1, inputs], ..row };
            state = self.gru_step(node, step, &row, &state, &weights, linear_before_reset)?;
            states.push(state.clone());
        }
        if let Some(output) = node.outputs.first().filter(|name| !name.is_empty()) {
            let operands: Vec<&Tensor> = states.iter().collect();
            let lens = vec![hidden; steps];
            self.step(output, vec![steps, 1, 1, hidden], &operands, 0, || Operation::Concat(lens))?;
        }
        if let Some(output) = node.outputs.get(1).filter(|name| !name.is_empty()) {
            self.tensors.insert(output.clone(), Tensor { shape: vec![1, 1, hidden], ..state });
        }
        Ok(())
    }

    /// The state after a step: `(1 - z) n + z h`.
    fn gru_step(
        &mut self,
        node: &NodeMessage,
        step: usize,
        row: &Tensor,
        state: &Tensor,
        weights: &Weights,
        linear_before_reset: bool,
    ) -> Result<Tensor, ModelError> {
        let label = |gate: usize, what: &str| name(weights, step, &format!("{} {what}", GATES[gate]));
        let mut of_input = Vec::new();
        for gate in 0..3 {
            let product = self.product(node, &label(gate, "input"), row, &weights.input[gate])?;
            let bias = &weights.input_bias[gate];
            of_input.push(self.combined(node, &label(gate, "biased"), &product, bias, Binary::Add)?);
        }
        let mut gates = Vec::new();
        for (gate, of_input) in of_input.iter().take(2).enumerate() {
            let of_state = self.of_state(node, &label(gate, "state"), gate, state, weights)?;
            let sum = self.combined(node, &label(gate, "sum"), of_input, &of_state, Binary::Add)?;
            gates.push(self.mapped(&label(gate, "gate"), &sum, Unary::Sigmoid)?);
        }
        let of_state = if linear_before_reset {
            let of_state = self.of_state(node, &label(2, "state"), 2, state, weights)?;
            self.combined(node, &label(2, "kept"), &gates[1], &of_state, Binary::Mul)?
        } else {
            let kept = self.combined(node, &label(2, "kept"), &gates[1], state, Binary::Mul)?;
            self.of_state(node, &label(2, "state"), 2, &kept, weights)?
        };
        let sum = self.combined(node, &label(2, "sum"), &of_input[2], &of_state, Binary::Add)?;
        let new = self.mapped(&label(2, "gate"), &sum, Unary::Tanh)?;
        let share = self.combined(node, &label(0, "rest"), &weights.one, &gates[0], Binary::Sub)?;
        let new = self.combined(node, &label(2, "share"), &share, &new, Binary::Mul)?;
        let old = self.combined(node, &label(0, "share"), &gates[0], state, Binary::Mul)?;
        self.combined(node, &label(0, "next"), &new, &old, Binary::Add)
    }

    /// The contribution of the state to a gate.
    fn of_state(
        &mut self,
        node: &NodeMessage,
        name: &str,
        gate: usize,
        state: &Tensor,
        weights: &Weights,
    ) -> Result<Tensor, ModelError> {
        let product = self.product(node, name, state, &weights.state[gate])?;
        self.combined(node, &format!("{name} biased"), &product, &weights.state_bias[gate], Binary::Add)
    }

    /// The weights of a node. ONNX stacks their matrices and transposes them.
    fn gru_weights(&mut self, node: &NodeMessage, inputs: usize, hidden: usize) -> Result<Weights, ModelError> {
        let numbers = |index: usize, shape: [usize; 3]| {
            let tensor = self.operand(node, index)?;
            let numbers = self.numbers(&tensor).filter(|_| tensor.shape == shape[..3 - usize::from(shape[2] == 0)]);
            let problem = || wrong(node, &format!("input {} is not a constant of the right size", index + 1));
            numbers.map(<[f32]>::to_vec).ok_or_else(problem)
        };
        element_count(&[hidden, inputs.max(hidden)])?;
        let of_input = numbers(1, [1, 3 * hidden, inputs])?;
        let of_state = numbers(2, [1, 3 * hidden, hidden])?;
        let biases = match node.inputs.get(3).filter(|name| !name.is_empty()) {
            Some(_) => numbers(3, [1, 6 * hidden, 0])?,
            None => vec![0.0; 6 * hidden],
        };
        let prefix = format!("gru {}", self.values.len());
        let mut matrices = |kind: &str, numbers: &[f32], rows: usize| {
            let mut matrix = |gate: usize| {
                let block = &numbers[gate * hidden * rows..][..hidden * rows];
                let transposed = (0..block.len()).map(|index| block[index % hidden * rows + index / hidden]).collect();
                self.named_constant(&format!("{prefix} {kind} {gate}"), vec![rows, hidden], transposed)
            };
            Ok::<_, ModelError>([matrix(0)?, matrix(1)?, matrix(2)?])
        };
        let [input, state] = [matrices("weights", &of_input, inputs)?, matrices("state weights", &of_state, hidden)?];
        let input_bias = matrices("biases", &biases[..3 * hidden], 1)?;
        let state_bias = matrices("state biases", &biases[3 * hidden..], 1)?;
        let one = self.named_constant(&format!("{prefix} one"), vec![1, 1], vec![1.0])?;
        Ok(Weights { input, state, input_bias, state_bias, one, prefix })
    }

    fn named_constant(&mut self, name: &str, shape: Vec<usize>, numbers: Vec<f32>) -> Result<Tensor, ModelError> {
        self.numbers_constant(name, shape, numbers)?;
        Ok(self.tensors[name].clone())
    }

    fn product(&mut self, node: &NodeMessage, name: &str, left: &Tensor, right: &Tensor) -> Result<Tensor, ModelError> {
        self.mat_mul(node, name, left, right)?;
        Ok(self.tensors[name].clone())
    }

    fn combined(
        &mut self,
        node: &NodeMessage,
        name: &str,
        left: &Tensor,
        right: &Tensor,
        function: Binary,
    ) -> Result<Tensor, ModelError> {
        self.binary_step(node, name, left, right, function)?;
        Ok(self.tensors[name].clone())
    }

    fn mapped(&mut self, name: &str, tensor: &Tensor, function: Unary) -> Result<Tensor, ModelError> {
        self.step(name, tensor.shape.clone(), &[tensor], 0, || Operation::Unary(function))?;
        Ok(self.tensors[name].clone())
    }
}

/// The name of a value of a step.
fn name(weights: &Weights, step: usize, what: &str) -> String {
    format!("{} {step} {what}", weights.prefix)
}
