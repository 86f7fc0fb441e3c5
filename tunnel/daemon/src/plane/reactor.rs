//! The loop: waits for the device, the sockets, the timer and the control thread, and hands what comes to the engine.
//!
//! Level-triggered epoll. In each turn every descriptor that is ready gets the same small budget of super-packets, so that
//! no direction and no path starves another; then the engine sends what it has gathered. The timer is a timerfd with
//! nanoseconds, which is set only when a deadline moves before it: one that comes too early is harmless.

use super::buffer::{Class, Fresh, Pool};
use super::channel::{Command, Inbox};
use super::device::Device;
use super::report::Report;
use super::setup::{Error, Update};
use super::socket::{Arrival, Socket};
use super::sockets;
use nix::errno::Errno;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use nix::time::clock_gettime;
use std::time::Duration;
use units::Instant;

/// Super-packets that one descriptor may bring in one turn: half a megabyte at most.
const BUDGET: usize = 8;
/// Events fetched at once.
const EVENTS: usize = 32;
/// Bounds of the buffer pools: 64 MiB and 264 MiB. Pages that no packet reached cost nothing.
const SMALL_BUFFERS: usize = 32 * 1024;
const LARGE_BUFFERS: usize = 4096;

const DEVICE: u64 = u64::MAX;
const TIMER: u64 = u64::MAX - 1;
const INBOX: u64 = u64::MAX - 2;

/// What is between the device and the sockets.
pub(super) trait Engine {
    /// The device gave `len` bytes (with their virtio-net header, if it has any), which lie in `io.scratch`.
    fn outward(&mut self, io: &mut Io, now: Instant, len: usize);
    /// A socket received datagrams, which lie in `io.scratch`.
    fn inward(&mut self, io: &mut Io, now: Instant, socket: usize, arrival: &Arrival);
    /// A turn ends: what was gathered leaves.
    fn flush(&mut self, io: &mut Io, now: Instant);
    /// A socket is writable again.
    fn writable(&mut self, io: &mut Io, now: Instant, socket: usize);
    /// Whether something waits until this socket is writable.
    fn is_blocked(&self, socket: usize) -> bool;
    /// Whether the device has to wait: nothing is read from it then.
    fn holds_back(&self) -> bool {
        false
    }
    /// When [`Self::on_timeout`] is due.
    fn deadline(&self) -> Instant;
    /// A deadline passed. Early calls are harmless.
    fn on_timeout(&mut self, io: &mut Io, now: Instant);
    /// The link of a socket works or not, as netlink says.
    fn set_link(&mut self, io: &mut Io, now: Instant, socket: usize, up: bool);
    /// A person takes a path out of use, or puts it back.
    fn set_path(&mut self, io: &mut Io, now: Instant, path: usize, enabled: bool);
    /// Whether it can become this.
    ///
    /// # Errors
    /// Why not.
    fn check(&self, _update: &Update) -> Result<(), Error> {
        Err(Error::setup("this mode cannot change while it runs"))
    }
    /// Becomes this, which was checked. These sockets are others already, or closed.
    fn update(&mut self, _io: &mut Io, _now: Instant, _update: Update, _replaced: &[usize]) {}
    /// The loop ends: says goodbye.
    fn stop(&mut self, _io: &mut Io, _now: Instant) {}
    /// Adds its numbers.
    fn report(&self, report: &mut Report);
}

/// What every engine works with.
pub(super) struct Io {
    pub(super) device: Device,
    pub(super) sockets: Vec<Socket>,
    pub(super) pool: Pool,
    /// Where the kernel puts what is read next.
    pub(super) scratch: Fresh,
}

impl Io {
    pub(super) fn new(device: Device, sockets: Vec<Socket>) -> Self {
        let mut pool = Pool::new(SMALL_BUFFERS, LARGE_BUFFERS);
        let scratch = pool.take(Class::Large).expect("an empty pool has room");
        Self { device, sockets, pool, scratch }
    }
}

/// The loop's own state.
pub(super) struct Reactor {
    epoll: Epoll,
    timer: TimerFd,
    /// CLOCK_MONOTONIC at our zero.
    zero: Duration,
    /// What the timer is set to.
    armed: Instant,
    /// The device is not watched, as the engine holds it back.
    holds_back: bool,
}

impl Reactor {
    /// Watches the device and the inbox; the sockets are watched from the first turn on.
    ///
    /// # Errors
    /// The kernel has no descriptors left.
    pub(super) fn new(io: &Io, inbox: &Inbox) -> Result<Self, Error> {
        let fail = |errno: Errno| Error::new("the event loop", errno);
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC).map_err(fail)?;
        let timer = TimerFd::new(ClockId::CLOCK_MONOTONIC, TimerFlags::TFD_NONBLOCK | TimerFlags::TFD_CLOEXEC);
        let timer = timer.map_err(fail)?;
        epoll.add(&io.device, EpollEvent::new(EpollFlags::EPOLLIN, DEVICE)).map_err(fail)?;
        epoll.add(&timer, EpollEvent::new(EpollFlags::EPOLLIN, TIMER)).map_err(fail)?;
        epoll.add(inbox, EpollEvent::new(EpollFlags::EPOLLIN, INBOX)).map_err(fail)?;
        Ok(Self { epoll, timer, zero: monotonic().map_err(fail)?, armed: Instant::NEVER, holds_back: false })
    }

    /// Runs until it is told to stop.
    ///
    /// # Errors
    /// The device is gone.
    pub(super) fn run(&mut self, io: &mut Io, engine: &mut dyn Engine, inbox: &Inbox) -> Result<(), Error> {
        let fail = |errno: Errno| Error::new("the event loop", errno);
        let mut events = [EpollEvent::empty(); EVENTS];
        loop {
            self.watch(io, engine).map_err(fail)?;
            self.arm(engine.deadline()).map_err(fail)?;
            let ready = match self.epoll.wait(&mut events, EpollTimeout::NONE) {
                Ok(ready) => ready,
                Err(Errno::EINTR) => continue,
                Err(errno) => return Err(fail(errno)),
            };
            let now = self.now();
            for event in &events[..ready] {
                match event.data() {
                    DEVICE => read_device(io, engine, now)?,
                    TIMER => self.disarm(),
                    INBOX => {
                        if !obey(io, engine, now, inbox) {
                            return Ok(());
                        }
                    }
                    socket => serve(io, engine, now, socket as usize, event.events()),
                }
            }
            if now >= engine.deadline() {
                engine.on_timeout(io, now);
            }
            engine.flush(io, now);
        }
    }

    fn now(&self) -> Instant {
        let since = monotonic().unwrap_or(self.zero).saturating_sub(self.zero);
        Instant(since.as_nanos() as u64)
    }

    /// The timer fires at `deadline` at the latest.
    fn arm(&mut self, deadline: Instant) -> Result<(), Errno> {
        if deadline >= self.armed {
            return Ok(());
        }
        self.armed = deadline;
        let at = TimeSpec::from_duration(self.zero + Duration::from_nanos(deadline.0));
        self.timer.set(Expiration::OneShot(at), TimerSetTimeFlags::TFD_TIMER_ABSTIME)
    }

    fn disarm(&mut self) {
        self.armed = Instant::NEVER;
        // Reading makes it quiet; it is ready, or was set anew meanwhile.
        let _ = self.timer.wait();
    }

    /// Watches the sockets that are open, and the full ones for room. A closed one is watched no more by itself.
    fn watch(&mut self, io: &mut Io, engine: &dyn Engine) -> Result<(), Errno> {
        for (index, socket) in io.sockets.iter_mut().enumerate() {
            let room = if engine.is_blocked(index) { EpollFlags::EPOLLOUT } else { EpollFlags::empty() };
            let wanted = EpollFlags::EPOLLIN | room;
            let Some(fd) = socket.fd().filter(|_| socket.watched != wanted) else { continue };
            let mut event = EpollEvent::new(wanted, index as u64);
            if socket.watched.is_empty() { self.epoll.add(fd, event) } else { self.epoll.modify(fd, &mut event) }?;
            socket.watched = wanted;
        }
        if engine.holds_back() != self.holds_back {
            self.holds_back = engine.holds_back();
            let wanted = if self.holds_back { EpollFlags::empty() } else { EpollFlags::EPOLLIN };
            self.epoll.modify(&io.device, &mut EpollEvent::new(wanted, DEVICE))?;
        }
        Ok(())
    }
}

fn monotonic() -> Result<Duration, Errno> {
    clock_gettime(nix::time::ClockId::CLOCK_MONOTONIC).map(Duration::from)
}

fn read_device(io: &mut Io, engine: &mut dyn Engine, now: Instant) -> Result<(), Error> {
    for _ in 0..BUDGET {
        if engine.holds_back() {
            break;
        }
        match io.device.read(&mut io.scratch) {
            Ok(Some(len)) => engine.outward(io, now, len),
            Ok(None) => break,
            Err(errno) => return Err(Error::new("the TUN device", errno)),
        }
    }
    Ok(())
}

fn serve(io: &mut Io, engine: &mut dyn Engine, now: Instant, socket: usize, flags: EpollFlags) {
    if flags.contains(EpollFlags::EPOLLOUT) {
        engine.writable(io, now, socket);
    }
    if !flags.intersects(EpollFlags::EPOLLIN | EpollFlags::EPOLLERR) {
        return;
    }
    for _ in 0..BUDGET {
        let Some(arrival) = io.sockets[socket].receive(&mut io.scratch) else { break };
        engine.inward(io, now, socket, &arrival);
    }
}

/// Carries the commands out. False: stop.
fn obey(io: &mut Io, engine: &mut dyn Engine, now: Instant, inbox: &Inbox) -> bool {
    for command in inbox.drain() {
        match command {
            Command::Stop => {
                engine.stop(io, now);
                return false;
            }
            Command::Report(tell) => tell(report(io, engine, now)),
            Command::Link { device, link } => {
                for (socket, up) in sockets::follow(&mut io.sockets, &device, link) {
                    engine.set_link(io, now, socket, up);
                }
            }
            Command::Path { path, enabled } => engine.set_path(io, now, path, enabled),
            Command::Update(update, tell) => tell(become_other(io, engine, now, *update)),
        }
    }
    true
}

/// All of an update, or nothing of it.
fn become_other(io: &mut Io, engine: &mut dyn Engine, now: Instant, update: Update) -> Result<Vec<String>, Error> {
    engine.check(&update)?;
    let replaced = sockets::replace(&mut io.sockets, &update.sockets)?;
    engine.update(io, now, update, &replaced);
    Ok(sockets::waiting(&io.sockets))
}

fn report(io: &Io, engine: &dyn Engine, now: Instant) -> Report {
    let sockets = io.sockets.iter().map(|socket| socket.report).collect();
    let mut report = Report { now, device: io.device.report, sockets, buffers: io.pool.report(), ..Report::default() };
    engine.report(&mut report);
    report
}
