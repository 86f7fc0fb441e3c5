//! Integration tests.

mod files;
mod onnx;
mod reference;
