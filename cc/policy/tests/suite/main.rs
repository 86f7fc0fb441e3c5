//! Integration tests.

mod files;
mod onnx;
