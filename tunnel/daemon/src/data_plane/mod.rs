//! The data plane: one thread that moves packets between a TUN device and one UDP socket for each uplink.
//!
//! [`DataPlane::open`] opens what needs privileges (device, sockets), [`DataPlane::run`] loops until [`Command::Stop`].
//! The control thread sends commands through a [`CommandSender`]; nothing is shared, and no lock is held.
//!
//! Packets live in pooled, reference-counted buffers (`buffer`). The device (`device`) and the sockets (`socket`) move
//! super-packets, which segmentation offload leaves whole. Datagrams leave in batches (`batch`), one system call each,
//! from a queue for each path (`transmit`). The engine between them is `mpt` (MPT's wire format) or `ropewalk` (sealed,
//! retransmitted, congestion-controlled).

mod address;
mod allowed_ips;
mod batch;
mod buffer;
mod channel;
mod coalescing;
mod config;
mod device;
mod event_loop;
mod mpt;
mod receive;
mod report;
mod ropewalk;
mod socket;
mod sockets;
mod transmit;

pub use channel::{Command, CommandReceiver, CommandSender, LinkEvent, channel};
pub(crate) use config::path_config;
pub use config::{
    DataPlaneConfig, DeviceConfig, EngineConfig, Error, MptConfig, MptPathConfig, PeerConfig, PeerPathConfig,
    RopewalkConfig, SocketConfig, Update,
};
pub use report::{
    AddressReport, BufferReport, DeviceReport, MptPathReport, MptReport, PeerReport, RelayCounters, RelayReport,
    Report, SocketReport,
};

use event_loop::{Engine, EventLoop, Io};

/// A data plane, ready to run.
pub struct DataPlane {
    io: Io,
    engine: Box<dyn Engine>,
}

impl DataPlane {
    /// Opens the device and the sockets. Needs CAP_NET_ADMIN, unlike everything that follows.
    ///
    /// # Errors
    /// The kernel's, or an error of the configuration.
    pub fn open(config: DataPlaneConfig) -> Result<Self, Error> {
        let device = device::Device::open(&config.device)?;
        let sockets = sockets::open(&config.sockets)?;
        let mut io = Io::new(device, sockets);
        let engine: Box<dyn Engine> = match config.engine {
            EngineConfig::Mpt(mpt) => Box::new(mpt::MptEngine::new(&mpt, &io)?),
            EngineConfig::Ropewalk(ropewalk) => {
                io.reserve(ropewalk.peers.len());
                Box::new(ropewalk::RopewalkEngine::new(ropewalk, config.device.mtu, &io)?)
            }
        };
        Ok(Self { io, engine })
    }

    /// Moves packets until [`Command::Stop`].
    ///
    /// # Errors
    /// The device was removed, or epoll fails.
    pub fn run(&mut self, commands: &CommandReceiver) -> Result<(), Error> {
        EventLoop::new(&self.io, commands)?.run(&mut self.io, &mut *self.engine, commands)
    }
}

impl std::fmt::Debug for DataPlane {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("DataPlane")
    }
}
