//! Real QUIC stacks as hosts in virtual time: quinn and noq, as they are released.
//!
//! [`register`] adds them to the stacks of a program, and a scenario names one: `kind = "hosted"`, `stack = "noq"`. By default,
//! their keys do not encrypt, and their handshake has the sizes of TLS 1.3's, so that times, sizes and contents of all packets
//! are the same in every run. With `tls = "on"` it is TLS 1.3. Then contents differ, and times and sizes do not.

#[macro_use]
mod null_crypto;
mod clock;
mod noq_stack;
mod options;
mod quinn_stack;
mod tls;
mod version;

use options::{MAX_PATHS, PARAMETERS};
use params::RegisterError;
use stack::{Constructor, StackEntry};
use std::sync::Arc;

/// Adds both stacks to this program.
///
/// # Errors
/// Another stack has the name of one of them.
pub fn register() -> Result<(), RegisterError> {
    stack::register(StackEntry {
        name: "quinn",
        title: "QUIC in Rust, with its own congestion controls cubic, newreno and bbr",
        code_version: version::of("quinn-proto", include_str!("quinn_stack.rs")),
        max_paths: 1,
        parameters: PARAMETERS,
        constructor: Constructor(Arc::new(quinn_stack::endpoints)),
    })?;
    stack::register(StackEntry {
        name: "noq",
        title: "multipath QUIC in Rust, with its own congestion controls cubic, newreno and bbr3",
        code_version: version::of("noq-proto", include_str!("noq_stack.rs")),
        max_paths: MAX_PATHS,
        parameters: PARAMETERS,
        constructor: Constructor(Arc::new(noq_stack::endpoints)),
    })?;
    Ok(())
}
