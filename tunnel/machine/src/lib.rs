//! The tunnel's sans-IO endpoint: inner packets are spread over several paths, and put back into order at the far end.
//!
//! An inner packet is cut into fragments; a fragment is one datagram's data. [`Endpoint`] is the whole machine of
//! Ropewalk's own tunnel. It is generic over the [`Payload`], and reads none of its bytes.

#[doc(hidden)]
pub mod check;
mod coalescing;
mod config;
mod endpoint;
mod entropy;
mod fragments;
mod ingress;
mod packet;
mod path;
mod realtime;
mod reassembly;
mod reorder;
mod secondary;
mod status;
mod streams;

pub use coalescing::{Coalescing, Reads};
pub use config::{
    EndpointConfig, MAX_PATHS, NEEDS_CONGESTION, OFF, PathClasses, PathConfig, RealtimeOptions, TunnelOptions,
};
pub use endpoint::Endpoint;
pub use entropy::Entropy;
pub use packet::{
    Arrival, DATA_HEADER_BYTES, Delivery, Destination, FIRST_REALTIME_STREAM, FIRST_UNORDERED_STREAM, Fragment,
    Payload, QueueRelation, REALTIME_END, SEAL_OVERHEAD, Transmit, TransmitBody,
};
pub use path::{Candidate, CandidateOutcome};
pub use reassembly::{PacketBuffer, ReassembledPacket, Reassembler};
pub use status::{ClassCounters, EndpointCounters, EndpointEvent, EndpointStatus, PathStatus};
