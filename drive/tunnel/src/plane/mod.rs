//! The data plane: one thread that moves packets between a TUN device and one UDP socket per uplink.
//!
//! [`Plane::open`] takes what needs privileges (device, sockets), [`Plane::run`] loops until it is told to stop. The
//! control thread talks to it through a [`Commander`]; nothing is shared, and no lock is held.
//!
//! Packets live in pooled, reference-counted buffers (`buffer`). The device (`device`) and the sockets (`socket`) move
//! super-packets: what segmentation offload leaves uncut. Datagrams leave in batches (`batch`), one system call each.
//! What is between them depends on the mode: `mpt` (MPT's wire format) or `ropewalk` (sealed, repaired, controlled).

mod batch;
mod buffer;
mod channel;
mod device;
mod report;
mod setup;
mod socket;

pub use channel::{Command, Commander, Inbox, channel};
pub use report::{BufferReport, Count, DeviceReport, MptPathReport, MptReport, Report, SocketReport};
pub use setup::{DeviceSetup, Error, Keepalive, Mode, MptPath, MptSetup, Reorder, Setup, SocketSetup};
