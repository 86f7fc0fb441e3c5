//! Evaluation of a model.

use super::Model;
use std::sync::Arc;

/// A model with buffers for its results. Many evaluators may share one model.
#[derive(Clone, Debug)]
pub struct Evaluator {
    model: Arc<Model>,
    /// A buffer for each value of the model; empty for constants.
    values: Vec<Vec<f32>>,
}

impl Evaluator {
    /// Allocates the buffers to evaluate `model`.
    #[must_use]
    pub fn new(model: Arc<Model>) -> Self {
        let values = model.values.iter().map(|value| match value.constant {
            Some(_) => Vec::new(),
            None => vec![0.0; value.len],
        });
        let values = values.collect();
        Self { model, values }
    }

    /// The model.
    #[must_use]
    pub fn model(&self) -> &Arc<Model> {
        &self.model
    }

    /// Returns the output for `input`, with the same bits on every machine. It allocates no memory, except for a
    /// concatenation of three or more operands.
    ///
    /// # Panics
    /// If `input` does not have [`Model::input_len`] numbers.
    pub fn evaluate(&mut self, input: &[f32]) -> &[f32] {
        let Self { model, values } = self;
        values[model.input].copy_from_slice(input);
        for step in &model.steps {
            let mut result = std::mem::take(&mut values[step.result]);
            let operand = |index: usize| model.values[index].constant.as_deref().unwrap_or(&values[index]);
            match step.operands[..] {
                [one] => step.operation.apply(&[operand(one)], &mut result),
                [left, right] => step.operation.apply(&[operand(left), operand(right)], &mut result),
                _ => {
                    let operands: Vec<&[f32]> = step.operands.iter().map(|index| operand(*index)).collect();
                    step.operation.apply(&operands, &mut result);
                }
            }
            values[step.result] = result;
        }
        model.values[model.output].constant.as_deref().unwrap_or(&values[model.output])
    }
}
