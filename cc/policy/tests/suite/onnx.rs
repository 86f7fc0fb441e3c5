//! Models are read, refused and evaluated. `tests/models/make.py` made them, and the answers of onnxruntime.

use ropewalk_policy::onnx::{Evaluator, Model, ModelError};
use std::path::Path;
use std::sync::Arc;

fn bytes(name: &str) -> Vec<u8> {
    std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/models").join(name)).unwrap()
}

fn evaluator(name: &str) -> Evaluator {
    Evaluator::new(Arc::new(Model::read(&bytes(name)).unwrap()))
}

#[test]
fn a_dense_layer_of_whole_numbers_is_exact() {
    let mut evaluator = evaluator("exact.onnx");
    assert_eq!(evaluator.evaluate(&[1.0, 2.0, 3.0]), [15.0, 0.0]);
    assert_eq!(evaluator.evaluate(&[-1.0, 0.0, 0.0]), [0.0, 2.0]);
    let model = evaluator.model();
    assert_eq!((model.input_len(), model.output_len()), (3, 2));
    assert_eq!(model.metadata()["ropewalk.version"], "1");
    // The input's 3 elements, 6 products, 2 sums, 2 additions of the bias, 2 of the rectifier; and 1 for each value.
    assert_eq!(model.operations(), 3 + 6 + 2 + 2 + 2 + 4);
}

#[test]
fn every_operator_answers_as_onnxruntime() {
    for name in ["operators", "convolution", "gru", "gru-linear", "gru-plain", "lstm", "lstm-plain", "indexing"] {
        let mut evaluator = evaluator(&format!("{name}.onnx"));
        for line in String::from_utf8(bytes(&format!("{name}.txt"))).unwrap().lines() {
            let numbers: Vec<f32> = line.split(' ').map(|number| number.parse().unwrap()).collect();
            let (observation, expected) = numbers.split_at(evaluator.model().input_len());
            let action = evaluator.evaluate(observation);
            assert_eq!(action.len(), expected.len(), "{name}");
            for (action, expected) in action.iter().zip(expected) {
                // Sums of 56 products of numbers below 100 in either order: (56 + some ten of earlier layers) roundings.
                let bound = 66.0 * f32::EPSILON * 100.0;
                assert!((action - expected).abs() <= bound, "{name}: {action} instead of {expected}");
            }
        }
    }
}

#[test]
fn a_batch_without_a_size_is_one_and_64_bit_floats_are_rounded() {
    assert_eq!(evaluator("dynamic.onnx").evaluate(&[1.0, -2.0, 0.5]), [1.0, -2.0, 0.5]);
    let mut double = evaluator("double.onnx");
    assert_eq!(double.evaluate(&[3.0]), [3.0, 3.0 * (1.0_f64 / 3.0) as f32]);
    assert_eq!(double.model().notes(), ["the model's 64-bit floats were rounded to 32 bits"]);
    assert!(evaluator("exact.onnx").model().notes().is_empty());
}

#[test]
fn what_is_not_supported_is_refused_by_name() {
    let refused = |name: &str| Model::read(&bytes(name)).unwrap_err().to_string();
    for (name, phrase) in [
        ("endless.onnx", "input `observation` has a dimension without a size: export it with the shape [1, n]"),
        ("matrix.onnx", "input `observation` has the shape [2, 3]"),
        ("recurrent.onnx", "unsupported operator `Sin`; supported: Abs,"),
        ("nan.onnx", "tensor `w` contains NaN"),
        ("argmax.onnx", "unsupported operator `ArgMax`"),
        ("peepholes.onnx", "operator `LSTM`: peepholes and coupled gates are not supported"),
        ("many-integers.onnx", "one decision takes"),
        ("wide.onnx", "operator `Conv`: shapes [1, 1] and [1, 1, 3]"),
        ("mismatch.onnx", "operator `MatMul`: matrices [1, 3] and [2, 2]"),
        ("large.onnx", "one decision takes 2"),
        ("operators.txt", "not an ONNX model"),
    ] {
        let message = refused(name);
        assert!(message.contains(phrase), "{name}: {message}");
    }
    assert_eq!(Model::read(&[]).unwrap_err(), ModelError::NotOnnx);
}

#[test]
fn no_truncated_or_altered_model_panics() {
    for name in ["operators.onnx", "convolution.onnx", "gru.onnx", "lstm.onnx", "indexing.onnx"] {
        check_altered(&bytes(name));
    }
}

/// Reads a model cut off and altered at each byte, and evaluates what can be read.
fn check_altered(original: &[u8]) {
    let (mut refused, mut evaluated) = (0, 0);
    let mut check = |bytes: &[u8]| match Model::read(bytes) {
        Ok(model) => {
            let input = vec![0.5; model.input_len()];
            let len = model.output_len();
            assert_eq!(Evaluator::new(Arc::new(model)).evaluate(&input).len(), len);
            evaluated += 1;
        }
        Err(error) => {
            assert!(!error.to_string().is_empty());
            refused += 1;
        }
    };
    for len in 0..original.len() {
        check(&original[..len]);
    }
    for index in 0..original.len() {
        for mask in [0x01, 0x80, 0xff] {
            let mut altered = original.to_vec();
            altered[index] ^= mask;
            check(&altered);
        }
    }
    assert!(refused > original.len() / 2, "{refused} refused, {evaluated} evaluated");
}
