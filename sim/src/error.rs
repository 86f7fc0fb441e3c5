//! Errors in an experiment.

use std::fmt;

/// The reason why an experiment cannot be run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// No algorithm of this name is registered.
    UnknownAlgorithm {
        /// The flow that asks for it.
        flow: String,
        /// The name.
        name: String,
    },
    /// No scheduler of this name is registered.
    UnknownScheduler {
        /// The name.
        name: String,
    },
    /// A parameter that the algorithm does not take.
    BadParameter {
        /// The flow that sets it.
        flow: String,
        /// The algorithm.
        algorithm: &'static str,
        /// The fault.
        source: control::ParamError,
    },
    /// A wrong configuration of the tunnel.
    Tunnel {
        /// The fault and how to fix it.
        reason: String,
    },
    /// A hosted stack that the program does not have, or that refuses its configuration.
    Stack {
        /// The flow that asks for it.
        flow: String,
        /// The fault.
        reason: String,
    },
    /// An initial receive buffer that is too small: half of it is the receive window, which must hold a segment.
    SmallBuffer {
        /// The flow that sets it.
        flow: String,
        /// Bytes of the buffer at the start.
        buffer: u64,
        /// Payload of a full segment, bytes.
        mss: u32,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownAlgorithm { flow, name } => write!(f, "flow {flow}: no congestion control is called `{name}`"),
            Self::UnknownScheduler { name } => write!(f, "no scheduler is called `{name}`"),
            Self::BadParameter { flow, algorithm, source } => write!(f, "flow {flow}: {algorithm}: {source}"),
            Self::Stack { flow, reason } => write!(f, "flow {flow}: {reason}"),
            Self::Tunnel { reason } => write!(f, "tunnel: {reason}"),
            Self::SmallBuffer { flow, buffer, mss } => {
                write!(
                    f,
                    "flow {flow}: an initial receive buffer of {buffer} bytes, half of which is the receive window, "
                )?;
                write!(f, "holds no segment of {mss} bytes")
            }
        }
    }
}

impl std::error::Error for Error {}
