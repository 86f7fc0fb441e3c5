//! The event loop: waits for the TUN device, the sockets, the timer and commands, and passes what is ready to the
//! engine.
//!
//! The loop uses level-triggered epoll. In each iteration every ready descriptor gets about the same small
//! budget of bytes, so that no direction or path starves another; then the engine sends the gathered datagrams. The timer
//! is a timerfd with nanoseconds. It is set only before the loop sleeps, and only if the deadline has become earlier:
//! an early expiry is harmless. While packets arrive one by one and often, the loop pauses between two iterations
//! ([`Coalescing`]).

use super::buffer::{BufferMut, Pool, SizeClass};
use super::channel::{Command, CommandReceiver};
use super::config::{Error, Update};
use super::device::Device;
use super::event::EventSender;
use super::report::Report;
use super::socket::{ReceiveBuffers, ReceivedDatagrams, Socket};
use super::sockets;
use super::threads::{HandOver, Inbox};
use ipnet::IpNet;
use machine::{Coalescing, Reads};
use nix::errno::Errno;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use nix::time::clock_gettime;
use std::os::fd::BorrowedFd;
use std::time::Duration;
use units::{Instant, Span};

/// Maximum number of super-packets read from the device in one iteration: half a megabyte.
const BUDGET: usize = 8;
/// Maximum number of epoll events fetched at once.
const MAX_EVENTS: usize = 32;
/// Bounds of the buffer pools for each peer: 256 MiB and 264 MiB. The ingress queue and the fragments in flight of one
/// peer are charged at most 256 MiB, so that they never take buffers that others need. Pages that no packet has used
/// are not resident.
const SMALL_BUFFERS: usize = 128 * 1024;
const LARGE_BUFFERS: usize = 4096;

const DEVICE_TOKEN: u64 = u64::MAX;
const TIMER_TOKEN: u64 = u64::MAX - 1;
const COMMANDS_TOKEN: u64 = u64::MAX - 2;
const ENGINE_TOKEN: u64 = u64::MAX - 3;
const INBOX_TOKEN: u64 = u64::MAX - 4;

/// A tunnel protocol between the TUN device and the sockets.
pub(super) trait Engine {
    /// `len` bytes were read from the device into `io.read_buffer`, with a virtio-net header if the device has one.
    fn on_device_packet(&mut self, io: &mut Io, now: Instant, len: usize);
    /// Datagrams were received from a socket into `io.read_buffer`.
    fn on_datagrams(&mut self, io: &mut Io, now: Instant, socket: usize, received: &ReceivedDatagrams);
    /// Another data thread has handed over `item` to this one.
    fn on_handed_over(&mut self, _io: &mut Io, _now: Instant, _item: HandOver) {}
    /// An iteration of the loop ends: sends the gathered datagrams.
    fn flush(&mut self, io: &mut Io, now: Instant);
    /// A socket is writable again.
    fn on_writable(&mut self, io: &mut Io, now: Instant, socket: usize);
    /// Whether datagrams wait until this socket is writable.
    fn is_blocked(&self, socket: usize) -> bool;
    /// Whether reading from the device is suspended (backpressure).
    fn is_device_paused(&self) -> bool {
        false
    }
    /// A descriptor of the engine's own, which is readable when [`Self::on_poll_ready`] has something to do.
    fn poll_fd(&self) -> Option<BorrowedFd<'_>> {
        None
    }
    /// The engine's own descriptor is readable.
    fn on_poll_ready(&mut self, _now: Instant) {}
    /// When [`Self::on_timeout`] is due.
    fn deadline(&self) -> Instant;
    /// Whether the loop pauses while bulk packets come one by one.
    fn coalesces_wake_ups(&self) -> bool {
        true
    }
    /// A deadline passed. Early calls are harmless.
    fn on_timeout(&mut self, io: &mut Io, now: Instant);
    /// The network device of a socket went up or down.
    fn set_link(&mut self, io: &mut Io, now: Instant, socket: usize, up: bool);
    /// Whether `update` can be applied.
    ///
    /// # Errors
    /// Why it cannot.
    fn check(&self, _update: &Update) -> Result<(), Error> {
        Err(Error::config("this mode cannot change while it runs"))
    }
    /// Applies an update that was checked. The sockets `replaced` are new ones already, or closed.
    fn update(&mut self, _io: &mut Io, _now: Instant, _update: Update, _replaced: &[usize]) {}
    /// Sets the inner networks whose packets are accepted from the peer, in `mpt` mode.
    fn set_allowed_ips(&mut self, _networks: &[IpNet]) {}
    /// The loop ends: announces it to the peers.
    fn stop(&mut self, _io: &mut Io, _now: Instant) {}
    /// Adds the engine's counters to `report`.
    fn report(&self, report: &mut Report);
}

/// Device, sockets and buffers, which the engine uses.
pub(super) struct Io {
    pub(super) device: Device,
    pub(super) sockets: Vec<Socket>,
    pub(super) pool: Pool,
    /// The buffer of the next read from the device or a socket.
    pub(super) read_buffer: BufferMut,
    received: ReceiveBuffers,
    /// The channel for events of peers and paths.
    pub(super) events: EventSender,
}

impl Io {
    pub(super) fn new(device: Device, sockets: Vec<Socket>, events: EventSender) -> Self {
        let mut pool = Pool::new(SMALL_BUFFERS, LARGE_BUFFERS);
        let read_buffer = pool.take(SizeClass::Large).expect("an empty pool has room");
        let received = ReceiveBuffers::new(&mut pool);
        Self { device, sockets, pool, read_buffer, received, events }
    }
}

impl Io {
    /// Raises the bounds of the buffer pools to those for this number of peers.
    pub(super) fn reserve(&mut self, peers: usize) {
        self.pool.grow(peers.max(1) * SMALL_BUFFERS, peers.max(1) * LARGE_BUFFERS);
    }

    /// Bytes that the device and the sockets have carried.
    fn bytes(&self) -> u64 {
        let sockets = self.sockets.iter().map(|socket| socket.report.sent.bytes + socket.report.received.bytes);
        self.device.report.read.bytes + self.device.report.written.bytes + sockets.sum::<u64>()
    }
}

/// The event loop's own state.
pub(super) struct EventLoop {
    epoll: Epoll,
    timer: TimerFd,
    /// CLOCK_MONOTONIC at `Instant::ZERO`.
    epoch: Duration,
    /// The time of the next expiry.
    next_expiry: Instant,
    /// Whether the device is out of the interest list.
    device_paused: bool,
    coalescing: Coalescing,
}

impl EventLoop {
    /// Adds the device and the command channel to the interest list; sockets follow in the first iteration.
    ///
    /// # Errors
    /// No file descriptor is left.
    pub(super) fn new(
        io: &Io,
        commands: &CommandReceiver,
        inbox: Option<&Inbox>,
        epoch: Option<Duration>,
    ) -> Result<Self, Error> {
        let to_error = |errno: Errno| Error::new("the event loop", errno);
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC).map_err(to_error)?;
        let timer = TimerFd::new(ClockId::CLOCK_MONOTONIC, TimerFlags::TFD_NONBLOCK | TimerFlags::TFD_CLOEXEC);
        let timer = timer.map_err(to_error)?;
        epoll.add(&io.device, EpollEvent::new(EpollFlags::EPOLLIN, DEVICE_TOKEN)).map_err(to_error)?;
        epoll.add(&timer, EpollEvent::new(EpollFlags::EPOLLIN, TIMER_TOKEN)).map_err(to_error)?;
        epoll.add(commands, EpollEvent::new(EpollFlags::EPOLLIN, COMMANDS_TOKEN)).map_err(to_error)?;
        if let Some(inbox) = inbox {
            epoll.add(inbox, EpollEvent::new(EpollFlags::EPOLLIN, INBOX_TOKEN)).map_err(to_error)?;
        }
        Ok(Self {
            epoll,
            timer,
            epoch: epoch.map_or_else(monotonic, Ok).map_err(to_error)?,
            next_expiry: Instant::NEVER,
            device_paused: false,
            coalescing: Coalescing::default(),
        })
    }

    /// Runs until [`Command::Stop`].
    ///
    /// # Errors
    /// The device was removed, or epoll fails.
    pub(super) fn run(
        &mut self,
        io: &mut Io,
        engine: &mut dyn Engine,
        commands: &CommandReceiver,
        inbox: Option<&Inbox>,
    ) -> Result<(), Error> {
        let to_error = |errno: Errno| Error::new("the event loop", errno);
        let mut events = [EpollEvent::empty(); MAX_EVENTS];
        if let Some(fd) = engine.poll_fd() {
            self.epoll.add(fd, EpollEvent::new(EpollFlags::EPOLLIN, ENGINE_TOKEN)).map_err(to_error)?;
        }
        loop {
            self.update_interest(io, engine).map_err(to_error)?;
            let event_count = match self.wait(&mut events, engine.deadline()) {
                Ok(event_count) => event_count,
                Err(Errno::EINTR) => continue,
                Err(errno) => return Err(to_error(errno)),
            };
            let now = self.now();
            let bytes_before = io.bytes();
            let mut reads = Reads::default();
            for event in &events[..event_count] {
                match event.data() {
                    DEVICE_TOKEN => reads.add(read_device(io, engine, now)?, BUDGET),
                    TIMER_TOKEN => self.disarm(),
                    ENGINE_TOKEN => engine.on_poll_ready(now),
                    INBOX_TOKEN => {
                        let items = inbox.into_iter().flat_map(Inbox::drain);
                        items.for_each(|item| engine.on_handed_over(io, now, item));
                    }
                    COMMANDS_TOKEN => {
                        if !handle_commands(io, engine, now, commands) {
                            return Ok(());
                        }
                    }
                    socket => {
                        let limit = io.received.limit();
                        reads.add(on_socket_event(io, engine, now, socket as usize, event.events()), limit);
                    }
                }
            }
            if now >= engine.deadline() {
                engine.on_timeout(io, now);
            }
            engine.flush(io, now);
            // A reload may have replaced sockets, and their counters.
            let bytes = io.bytes().saturating_sub(bytes_before);
            let pause = self.coalescing.pause(now, &reads, bytes).min(engine.deadline().since(now));
            if pause > Span::ZERO && engine.coalesces_wake_ups() {
                std::thread::sleep(Duration::from_nanos(pause.as_nanos()));
            }
        }
    }

    /// Waits for events until `deadline`. The timer is set only if there are no events yet: setting it costs more than
    /// a call of epoll.
    fn wait(&mut self, events: &mut [EpollEvent], deadline: Instant) -> Result<usize, Errno> {
        let event_count = self.epoll.wait(events, EpollTimeout::ZERO)?;
        if event_count > 0 || self.now() >= deadline {
            return Ok(event_count);
        }
        self.arm(deadline)?;
        self.epoll.wait(events, EpollTimeout::NONE)
    }

    fn now(&self) -> Instant {
        let elapsed = monotonic().unwrap_or(self.epoch).saturating_sub(self.epoch);
        Instant(elapsed.as_nanos() as u64)
    }

    /// Sets the timer to expire at `deadline`, unless it expires earlier.
    fn arm(&mut self, deadline: Instant) -> Result<(), Errno> {
        if deadline >= self.next_expiry {
            return Ok(());
        }
        self.next_expiry = deadline;
        let expiry = TimeSpec::from_duration(self.epoch + Duration::from_nanos(deadline.0));
        self.timer.set(Expiration::OneShot(expiry), TimerSetTimeFlags::TFD_TIMER_ABSTIME)
    }

    fn disarm(&mut self) {
        self.next_expiry = Instant::NEVER;
        // Reading clears the expiry. The timer may have been set again since.
        let _ = self.timer.wait();
    }

    /// Updates the interest list: open sockets, also for writing if datagrams wait. The kernel removes closed
    /// descriptors by itself.
    fn update_interest(&mut self, io: &mut Io, engine: &dyn Engine) -> Result<(), Errno> {
        for (index, socket) in io.sockets.iter_mut().enumerate() {
            let writable = if engine.is_blocked(index) { EpollFlags::EPOLLOUT } else { EpollFlags::empty() };
            let interest = EpollFlags::EPOLLIN | writable;
            let Some(fd) = socket.fd().filter(|_| socket.interest != interest) else { continue };
            let mut event = EpollEvent::new(interest, index as u64);
            if socket.interest.is_empty() { self.epoll.add(fd, event) } else { self.epoll.modify(fd, &mut event) }?;
            socket.interest = interest;
        }
        if engine.is_device_paused() != self.device_paused {
            self.device_paused = engine.is_device_paused();
            let interest = if self.device_paused { EpollFlags::empty() } else { EpollFlags::EPOLLIN };
            self.epoll.modify(&io.device, &mut EpollEvent::new(interest, DEVICE_TOKEN))?;
        }
        Ok(())
    }
}

fn monotonic() -> Result<Duration, Errno> {
    clock_gettime(nix::time::ClockId::CLOCK_MONOTONIC).map(Duration::from)
}

/// Reads from the device; returns the number of reads.
fn read_device(io: &mut Io, engine: &mut dyn Engine, now: Instant) -> Result<usize, Error> {
    for reads in 0..BUDGET {
        if engine.is_device_paused() {
            return Ok(reads);
        }
        match io.device.read(&mut io.read_buffer) {
            Ok(Some(len)) => engine.on_device_packet(io, now, len),
            Ok(None) => return Ok(reads),
            Err(errno) => return Err(Error::new("the TUN device", errno)),
        }
    }
    Ok(BUDGET)
}

/// Sends waiting datagrams and reads from a socket; returns the number of messages.
fn on_socket_event(io: &mut Io, engine: &mut dyn Engine, now: Instant, socket: usize, flags: EpollFlags) -> usize {
    if flags.contains(EpollFlags::EPOLLOUT) {
        engine.on_writable(io, now, socket);
    }
    if !flags.intersects(EpollFlags::EPOLLIN | EpollFlags::EPOLLERR) {
        return 0;
    }
    let count = io.sockets[socket].receive(&mut io.received);
    for index in 0..count {
        let received = io.sockets[socket].received(&io.received, index);
        std::mem::swap(&mut io.read_buffer, io.received.buffer_mut(index));
        engine.on_datagrams(io, now, socket, &received);
    }
    count
}

/// Carries out all queued commands. False after [`Command::Stop`].
fn handle_commands(io: &mut Io, engine: &mut dyn Engine, now: Instant, commands: &CommandReceiver) -> bool {
    for command in commands.drain() {
        match command {
            Command::Stop => {
                engine.stop(io, now);
                return false;
            }
            Command::Report(reply) => reply(full_report(io, engine, now)),
            Command::Link { device, event, next } => {
                for (socket, up) in sockets::on_link_event(&mut io.sockets, &device, event) {
                    engine.set_link(io, now, socket, up);
                }
                next.into_iter().for_each(|next| next());
            }
            Command::Prepare(update, reply) => {
                let checked = engine.check(&update);
                reply(checked.map(|()| sockets::close_replaced(&mut io.sockets, &update.sockets)));
            }
            Command::Reopen => sockets::reopen_all(&mut io.sockets),
            Command::AllowedIps(networks, reply) => {
                engine.set_allowed_ips(&networks);
                reply();
            }
            Command::Update(update, reply) => reply(apply_update(io, engine, now, *update)),
        }
    }
    true
}

/// Applies an update, all or nothing. Returns the names of the sockets that wait for their device.
fn apply_update(io: &mut Io, engine: &mut dyn Engine, now: Instant, update: Update) -> Result<Vec<String>, Error> {
    engine.check(&update)?;
    let replaced = sockets::replace(&mut io.sockets, &update.sockets)?;
    engine.update(io, now, update, &replaced);
    Ok(sockets::waiting_names(&io.sockets))
}

fn full_report(io: &Io, engine: &dyn Engine, now: Instant) -> Report {
    let sockets = io.sockets.iter().map(|socket| socket.report).collect();
    let mut report = Report { now, device: io.device.report, sockets, buffers: io.pool.report(), ..Report::default() };
    engine.report(&mut report);
    report
}
