//! Learned policies: models that decide windows or rates.
//!
//! [`onnx`] reads the file in which a policy leaves training, and evaluates it with the same bits on every machine.

pub mod onnx;
