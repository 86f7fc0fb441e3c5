//! GRU (Cho et al. 2014) and LSTM (Hochreiter and Schmidhuber 1997, without peepholes) in one direction, unrolled over
//! their sequence.

use super::ModelError;
use super::build::{Builder, Tensor, element_count};
use super::messages::NodeMessage;
use super::node::wrong;
use super::operation::{Binary, Operation, Unary};

/// A kind of recurrent layer: its gates in the order of ONNX's weights, and its default activations.
struct Kind {
    gates: &'static [&'static str],
    activations: &'static [&'static str],
    /// Number of states that it carries from step to step.
    states: usize,
}

const GRU: Kind = Kind { gates: &["update", "reset", "hidden"], activations: &["Sigmoid", "Tanh"], states: 1 };
const LSTM: Kind =
    Kind { gates: &["input", "output", "forget", "cell"], activations: &["Sigmoid", "Tanh", "Tanh"], states: 2 };

/// The gates' weights of the input and of the state, and their biases.
struct Weights {
    gates: &'static [&'static str],
    input: Vec<Tensor>,
    state: Vec<Tensor>,
    input_bias: Vec<Tensor>,
    state_bias: Vec<Tensor>,
    /// The constant 1.
    one: Tensor,
    /// The prefix of the names of the node's values. It is short, even if the file's names are long.
    prefix: String,
}

impl Builder {
    /// GRU over a sequence with a batch size of 1.
    pub(super) fn gru(&mut self, node: &NodeMessage) -> Result<(), ModelError> {
        let linear_before_reset = node.attributes.get("linear_before_reset").is_some_and(|it| it.integer != 0);
        self.unroll(node, &GRU, |builder, step, row, states, weights| {
            Ok(vec![builder.gru_step(node, step, row, &states[0], weights, linear_before_reset)?])
        })
    }

    /// LSTM over a sequence with a batch size of 1.
    pub(super) fn lstm(&mut self, node: &NodeMessage) -> Result<(), ModelError> {
        let couples = node.attributes.get("input_forget").is_some_and(|it| it.integer != 0);
        if couples || node.inputs.get(7).is_some_and(|name| !name.is_empty()) {
            return Err(wrong(node, "peepholes and coupled gates are not supported"));
        }
        self.unroll(node, &LSTM, |builder, step, row, states, weights| {
            builder.lstm_step(node, step, row, states, weights)
        })
    }

    /// Carries states through the steps of a sequence. The first of them is the output.
    fn unroll(
        &mut self,
        node: &NodeMessage,
        kind: &Kind,
        next: impl Fn(&mut Self, usize, &Tensor, &[Tensor], &Weights) -> Result<Vec<Tensor>, ModelError>,
    ) -> Result<(), ModelError> {
        let attribute = |name: &str| node.attributes.get(name);
        let direction = attribute("direction").map_or("forward", |it| it.text.as_str());
        let has_own = attribute("activations").is_none_or(|it| it.texts == kind.activations);
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
        let weights = self.recurrent_weights(node, kind, inputs, hidden)?;
        let mut states = (0..kind.states)
            .map(|index| self.initial_state(node, index, hidden, &weights))
            .collect::<Result<Vec<_>, _>>()?;
        let mut outputs = Vec::new();
        for step in 0..steps {
            let row = self.picked(&name(&weights, step, "input"), &tensor, 0, &[step])?;
            let row = Tensor { shape: vec![1, inputs], ..row };
            states = next(self, step, &row, &states, &weights)?;
            outputs.push(states[0].clone());
        }
        if let Some(output) = node.outputs.first().filter(|name| !name.is_empty()) {
            let operands: Vec<&Tensor> = outputs.iter().collect();
            let lens = vec![hidden; steps];
            self.step(output, vec![steps, 1, 1, hidden], &operands, 0, || Operation::Concat(lens))?;
        }
        for (output, state) in node.outputs.iter().skip(1).zip(states).filter(|(name, _)| !name.is_empty()) {
            self.tensors.insert(output.clone(), Tensor { shape: vec![1, 1, hidden], ..state });
        }
        Ok(())
    }

    /// The initial value of a state: an input of the node, or zeros.
    fn initial_state(
        &mut self,
        node: &NodeMessage,
        index: usize,
        hidden: usize,
        weights: &Weights,
    ) -> Result<Tensor, ModelError> {
        if node.inputs.get(5 + index).is_none_or(String::is_empty) {
            let name = format!("{} initial state {index}", weights.prefix);
            return self.named_constant(&name, vec![1, hidden], vec![0.0; hidden]);
        }
        let state = self.operand(node, 5 + index)?;
        match state.shape == [1, 1, hidden] {
            true => Ok(Tensor { shape: vec![1, hidden], ..state }),
            false => Err(wrong(node, &format!("an initial state of the shape {:?}", state.shape))),
        }
    }

    /// The states after a step: the output `o tanh(c)` and the cell `c = f c + i g`.
    fn lstm_step(
        &mut self,
        node: &NodeMessage,
        step: usize,
        row: &Tensor,
        states: &[Tensor],
        weights: &Weights,
    ) -> Result<Vec<Tensor>, ModelError> {
        let [output, cell] = states else { return Err(wrong(node, "two states are needed")) };
        let mut gates = Vec::new();
        for gate in 0..weights.gates.len() {
            let label = |what: &str| label(weights, step, gate, what);
            let of_input = self.of_input(node, step, gate, row, weights)?;
            let of_state = self.of_state(node, &label("state"), gate, output, weights)?;
            let sum = self.combined(node, &label("sum"), &of_input, &of_state, Binary::Add)?;
            let function = if weights.gates[gate] == "cell" { Unary::Tanh } else { Unary::Sigmoid };
            gates.push(self.mapped(&label("gate"), &sum, function)?);
        }
        let label = |gate: usize, what: &str| label(weights, step, gate, what);
        let old = self.combined(node, &label(2, "share"), &gates[2], cell, Binary::Mul)?;
        let new = self.combined(node, &label(0, "share"), &gates[0], &gates[3], Binary::Mul)?;
        let cell = self.combined(node, &label(3, "next"), &old, &new, Binary::Add)?;
        let shown = self.mapped(&label(3, "shown"), &cell, Unary::Tanh)?;
        Ok(vec![self.combined(node, &label(1, "next"), &gates[1], &shown, Binary::Mul)?, cell])
    }

    /// The contribution of the input to a gate.
    fn of_input(
        &mut self,
        node: &NodeMessage,
        step: usize,
        gate: usize,
        row: &Tensor,
        weights: &Weights,
    ) -> Result<Tensor, ModelError> {
        let product = self.product(node, &label(weights, step, gate, "input"), row, &weights.input[gate])?;
        let name = label(weights, step, gate, "biased");
        self.combined(node, &name, &product, &weights.input_bias[gate], Binary::Add)
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
        let label = |gate: usize, what: &str| label(weights, step, gate, what);
        let of_input =
            (0..3).map(|gate| self.of_input(node, step, gate, row, weights)).collect::<Result<Vec<_>, _>>()?;
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
    fn recurrent_weights(
        &mut self,
        node: &NodeMessage,
        kind: &Kind,
        inputs: usize,
        hidden: usize,
    ) -> Result<Weights, ModelError> {
        let (gates, count) = (kind.gates, kind.gates.len());
        let numbers = |index: usize, shape: [usize; 3]| {
            let tensor = self.operand(node, index)?;
            let numbers = self.numbers(&tensor).filter(|_| tensor.shape == shape[..3 - usize::from(shape[2] == 0)]);
            let problem = || wrong(node, &format!("input {} is not a constant of the right size", index + 1));
            numbers.map(<[f32]>::to_vec).ok_or_else(problem)
        };
        element_count(&[count, hidden, inputs.max(hidden)])?;
        let of_input = numbers(1, [1, count * hidden, inputs])?;
        let of_state = numbers(2, [1, count * hidden, hidden])?;
        let biases = match node.inputs.get(3).filter(|name| !name.is_empty()) {
            Some(_) => numbers(3, [1, 2 * count * hidden, 0])?,
            None => vec![0.0; 2 * count * hidden],
        };
        let prefix = format!("recurrent {}", self.values.len());
        let mut matrices = |kind: &str, numbers: &[f32], rows: usize| {
            let matrix = |gate: usize| {
                let block = &numbers[gate * hidden * rows..][..hidden * rows];
                let transposed = (0..block.len()).map(|index| block[index % hidden * rows + index / hidden]).collect();
                self.named_constant(&format!("{prefix} {kind} {gate}"), vec![rows, hidden], transposed)
            };
            (0..count).map(matrix).collect::<Result<Vec<_>, ModelError>>()
        };
        let [input, state] = [matrices("weights", &of_input, inputs)?, matrices("state weights", &of_state, hidden)?];
        let input_bias = matrices("biases", &biases[..count * hidden], 1)?;
        let state_bias = matrices("state biases", &biases[count * hidden..], 1)?;
        let one = self.named_constant(&format!("{prefix} one"), vec![1, 1], vec![1.0])?;
        Ok(Weights { gates, input, state, input_bias, state_bias, one, prefix })
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

/// The name of a value of a gate in a step.
fn label(weights: &Weights, step: usize, gate: usize, what: &str) -> String {
    name(weights, step, &format!("{} {what}", weights.gates[gate]))
}
