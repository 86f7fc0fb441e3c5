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
mod inlet;
mod mpt;
mod reactor;
mod report;
mod rope;
mod setup;
mod socket;
mod sockets;

pub use channel::{Command, Commander, Inbox, Link, channel};
pub use report::{
    BufferReport, Count, DeviceReport, MptPathReport, MptReport, PeerReport, Report, RouteReport, SocketReport,
};
pub use setup::{
    Carriage, Choice, DeviceSetup, Error, Keepalive, Mode, MptPath, MptSetup, PeerPath, PeerSetup, Reorder,
    RopewalkSetup, Setup, SocketSetup, Update,
};

use reactor::{Engine, Io, Reactor};

/// The data plane, ready to run.
pub struct Plane {
    io: Io,
    engine: Box<dyn Engine>,
}

impl Plane {
    /// Opens the device and the sockets: this needs CAP_NET_ADMIN, what follows does not.
    ///
    /// # Errors
    /// What the kernel refuses, and what is wrong with the setup.
    pub fn open(setup: Setup) -> Result<Self, Error> {
        let device = device::Device::open(&setup.device)?;
        let sockets = sockets::open(&setup.sockets)?;
        let io = Io::new(device, sockets);
        let engine: Box<dyn Engine> = match setup.mode {
            Mode::Mpt(setup) => Box::new(mpt::Mpt::new(setup, &io)?),
            Mode::Ropewalk(ropewalk) => Box::new(rope::Rope::new(ropewalk, setup.device.mtu, &io)?),
        };
        Ok(Self { io, engine })
    }

    /// Moves packets until it is told to stop.
    ///
    /// # Errors
    /// The device is gone, or the kernel refuses to wait.
    pub fn run(&mut self, inbox: &Inbox) -> Result<(), Error> {
        Reactor::new(&self.io, inbox)?.run(&mut self.io, &mut *self.engine, inbox)
    }
}

impl std::fmt::Debug for Plane {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Plane")
    }
}
