//! Links: queues, transmitters and wires.
//!
//! [`Pipe`] is one direction of a link. Its queue decides either on arrival (`enqueue_aqm`) or at departure
//! (`dequeue_aqm`). There is one queue (`fifo`), one for each flow (`fair_queue`), or two coupled ones (`dualpi2`).
//! Each remaining file holds one concept. [`CoDelState`] is CoDel alone, for queues of other crates.

mod aqm;
mod cobalt;
mod codel;
mod config;
mod correlated;
mod counters;
mod dequeue_aqm;
mod dualpi2;
mod egress;
mod enqueue_aqm;
mod fair_queue;
mod fifo;
mod grants;
mod impairments;
mod jitter;
mod limit;
mod loss;
mod packet;
mod packet_queue;
mod pie;
mod pipe;
mod policer;
mod qdisc;
mod red;
mod slots;
#[cfg(test)]
mod tests;
mod trace;
mod transmitter;
mod wire;

pub use codel::{CoDelAction, CoDelState};
pub use config::{
    CakeConfig, CoDelConfig, DualPi2Config, FqCodelConfig, GrantConfig, Jitter, JitterDistribution, LossModel,
    PieConfig, PipeConfig, PolicerConfig, QueueConfig, QueueDiscipline, QueueLimit, RateTrace, RedConfig, Reordering,
    SlotConfig,
};
pub use counters::LinkCounters;
pub use packet::{EcnField, Forwarded, Packet, Verdict};
pub use pipe::Pipe;
