//! Integration tests.

mod onnx;
