//! The data plane: a thread, or several (`threads`), that move packets between a TUN device and one UDP socket for each uplink.
//!
//! [`DataPlane::open`] opens the device and the sockets, which needs privileges; [`DataPlane::run`] loops until
//! [`Command::Stop`]. The control thread sends commands through a [`CommandSender`], and gets events through an
//! [`EventReceiver`]; nothing is shared, and no lock is held.
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
mod config;
mod device;
mod event;
mod event_loop;
mod mark;
#[cfg(feature = "mpt")]
mod mpt;
#[cfg(feature = "mpt")]
mod receive;
mod report;
mod ropewalk;
mod socket;
mod sockets;
mod steering;
mod threads;
mod transmit;

pub use channel::{Command, CommandReceiver, CommandSender, LinkEvent, channel};
pub(crate) use config::path_config;
pub use config::{
    DataPlaneConfig, DeviceConfig, EngineConfig, Error, MptConfig, MptPathConfig, OtherPeerConfig, PeerConfig,
    PeerPathConfig, RopewalkConfig, SocketConfig, Update,
};
pub use event::{
    Change, EventReceiver, EventSender, PathChange, PathName, PeerChange, PeerName, Refusal, TunnelEvent, event_channel,
};
pub use report::{
    AddressReport, BufferReport, DeviceReport, MptPathReport, MptReport, PeerReport, RelayCounters, RelayReport,
    Report, SocketReport,
};

pub use mark::SOCKET_MARK;
pub(crate) use mark::set_mark;
pub use threads::{MAX_THREADS, ThreadLinks};

use device::Device;
use event_loop::{Engine, EventLoop, Io};
use std::time::Duration;
use threads::Inbox;

/// A data plane, or one thread of several, ready to run.
pub struct DataPlane {
    io: Io,
    engine: Box<dyn Engine>,
    inbox: Option<Inbox>,
    epoch: Option<Duration>,
}

/// A queue of the TUN device.
pub struct DeviceQueue(Device);

impl DeviceQueue {
    /// Opens the device with a queue for each thread. Needs CAP_NET_ADMIN.
    ///
    /// # Errors
    /// The kernel's.
    pub fn open(config: &DeviceConfig, threads: usize) -> Result<Vec<Self>, Error> {
        Ok(Device::open_queues(config, threads)?.into_iter().map(Self).collect())
    }
}

impl DataPlane {
    /// Opens the device and the sockets. Needs CAP_NET_ADMIN, unlike everything that follows.
    ///
    /// # Errors
    /// The kernel's, or an error of the configuration.
    pub fn open(config: DataPlaneConfig) -> Result<Self, Error> {
        let device = Device::open(&config.device)?;
        Self::new(config, device, None)
    }

    /// Opens the sockets of one of several data threads, in the order of the threads.
    ///
    /// # Errors
    /// The kernel's, or an error of the configuration.
    pub fn open_thread(config: DataPlaneConfig, queue: DeviceQueue, links: ThreadLinks) -> Result<Self, Error> {
        Self::new(config, queue.0, Some(links))
    }

    fn new(config: DataPlaneConfig, device: Device, links: Option<ThreadLinks>) -> Result<Self, Error> {
        let sockets = sockets::open(&config.sockets)?;
        let mut io = Io::new(device, sockets, config.events);
        let (epoch, inbox, others) = match links {
            Some(ThreadLinks { others, inbox, epoch }) => (Some(epoch), Some(inbox), Some(others)),
            None => (None, None, None),
        };
        let engine: Box<dyn Engine> = match config.engine {
            #[cfg(feature = "mpt")]
            EngineConfig::Mpt(mpt) => Box::new(mpt::MptEngine::new(&mpt, &io)?),
            #[cfg(not(feature = "mpt"))]
            EngineConfig::Mpt(_) => return Err(Error::new("MPT's engine", std::io::ErrorKind::Unsupported)),
            EngineConfig::Ropewalk(ropewalk) => {
                io.reserve(ropewalk.peers.len());
                Box::new(ropewalk::RopewalkEngine::new(ropewalk, config.device.mtu, &io, others)?)
            }
        };
        Ok(Self { io, engine, inbox, epoch })
    }

    /// Moves packets until [`Command::Stop`].
    ///
    /// # Errors
    /// The device was removed, or epoll fails.
    pub fn run(&mut self, commands: &CommandReceiver) -> Result<(), Error> {
        let mut event_loop = EventLoop::new(&self.io, commands, self.inbox.as_ref(), self.epoch)?;
        event_loop.run(&mut self.io, &mut *self.engine, commands, self.inbox.as_ref())
    }
}

impl std::fmt::Debug for DataPlane {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("DataPlane")
    }
}
