//! Integration tests.

#![expect(clippy::disallowed_methods, reason = "tests read files")]

mod files;
mod onnx;
mod reference;
mod schedulers;
