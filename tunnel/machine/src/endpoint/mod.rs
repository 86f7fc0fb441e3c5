//! One end of a tunnel: parcels in, datagrams out, and back.
//!
//! ```text
//! device -> entrance -> (scheduler, windows, pacing) -> path ... path -> exit -> device
//!           fair queues                    \--- kept until acknowledged, sent again if lost
//! ```
//!
//! A parcel is cut into pieces when a path is ready for them, not before: what waits has no path yet, and any path carries
//! any piece. Pieces are numbered in their stream and kept until the peer has them. Each path has numbers of its own, and
//! so its own losses, round trips and rates, which feed the congestion control of the registry. Feedback of all paths comes
//! back by the fastest: a hole in the slow path's numbers is known, and its piece sent again by the fast one, about when the
//! slow one would have brought it.
//!
//! One input, then [`poll_transmit`](Endpoint::poll_transmit), [`poll_delivery`](Endpoint::poll_delivery) and
//! [`poll_event`](Endpoint::poll_event) until they are empty; then nothing until the next input or
//! [`deadline`](Endpoint::deadline).

mod feedback;
mod sending;

use super::entrance::Entrance;
use super::exit::{Exit, Rules};
use super::path::{Fates, Habits, Path, Pilot, Timeout};
use super::pieces::Pieces;
use super::vocabulary::{
    Arrival, Counters, Data, Delivery, Event, PathSetup, PathStatus, Payload, Setup, Status, Transmit,
};
use control::Controller;
use schedule::Scheduler;
use std::collections::VecDeque;
use units::{Instant, PathId, Span, Stream};
use wire::frame::{Ack, Frame, PathState};

/// Paths that there can be.
pub const MOST_PATHS: usize = 16;
/// The tunnel is in use until so long after the last data.
const BUSY: Span = Span::from_secs(10);
/// A path carries data while some came by it so lately.
const IN_USE: Span = Span::from_millis(500);
/// A piece that is older is not sent again: its flow has long helped itself.
const REPAIR_FOR: Span = Span::from_secs(1);
/// Pieces that are sent again on a doubtful path that has no other beside it: they ask whether it is there.
const DOUBTED: usize = 2;
/// The least that it is told.
const LEAST_HOLD: Span = Span::from_millis(5);
/// Before anything is measured.
const FIRST_HOLD: Span = Span::from_millis(100);

/// A parcel of which pieces have left.
#[derive(Debug)]
struct Cut<P> {
    stream: u8,
    parcel: P,
    from: u32,
    length: u32,
    /// Bytes of a piece: all are equal but the last one, which is hardly shorter, so that a driver can send them together.
    piece: u32,
}

/// One end of a tunnel.
#[derive(Debug)]
pub struct Endpoint<P> {
    scheduler: Box<dyn Scheduler>,
    controller: Option<Box<dyn Controller>>,
    random: Stream,
    repair: bool,
    hold_most: Span,
    probe: Span,
    /// CoDel's target and interval at the entrance, where all paths are equally fast.
    aim: (Span, Span),
    memory: u64,
    paths: Vec<Option<Path>>,
    /// The next packet number of each path that was taken away: a number is never used twice.
    numbers: [u64; MOST_PATHS],
    views: Vec<schedule::Path>,
    entrance: Entrance<P>,
    cut: Option<Cut<P>>,
    /// The next number of each stream.
    sequences: Vec<u32>,
    pieces: Pieces<P>,
    exit: Exit<P>,
    /// Pieces that stay on the path of the one before.
    burst: Option<(PathId, u32)>,
    fates: Fates,
    control: Vec<Frame>,
    events: VecDeque<Event>,
    counters: Counters,
    last_data: Option<Instant>,
    /// What the peer was told of the hold, and when.
    told: (Span, Instant),
    /// Something happened since the last time that nothing was left to send.
    stirred: bool,
}

impl<P: Payload> Endpoint<P> {
    /// An end without paths.
    #[must_use]
    pub fn new(setup: Setup) -> Self {
        let Setup { scheduler, controller, repair, order, deliver_late, hold_most, probe, target, .. } = setup;
        let rules = Rules { order, deliver_late, hold: FIRST_HOLD.min(hold_most), repair, memory: setup.memory };
        Self {
            scheduler,
            controller,
            random: Stream::named(setup.seed, "tunnel"),
            repair,
            hold_most,
            probe,
            aim: (target, setup.interval),
            memory: setup.memory,
            paths: Vec::new(),
            numbers: [0; MOST_PATHS],
            views: Vec::new(),
            entrance: Entrance::new(target, setup.interval, setup.memory),
            cut: None,
            sequences: vec![0; super::entrance::STREAMS],
            pieces: Pieces::default(),
            exit: Exit::new(rules),
            burst: None,
            fates: Fates::default(),
            control: Vec::new(),
            events: VecDeque::new(),
            counters: Counters::default(),
            last_data: None,
            told: (Span::ZERO, Instant::ZERO),
            stirred: false,
        }
    }

    /// A path that may be used once it has proved to work. One that exists is changed.
    ///
    /// # Panics
    /// With a path number of [`MOST_PATHS`] or more.
    pub fn set_path(&mut self, id: PathId, setup: PathSetup) {
        assert!(id.index() < MOST_PATHS, "at most {MOST_PATHS} paths");
        if self.paths.len() <= id.index() {
            self.paths.resize_with(id.index() + 1, || None);
        }
        match &mut self.paths[id.index()] {
            Some(path) => {
                path.change(setup);
                announce(path, id);
            }
            slot => {
                let mut path = Path::new(id, setup, self.numbers[id.index()]);
                announce(&mut path, id);
                *slot = Some(path);
            }
        }
    }

    /// The path is used no more, from now on, and the peer is told. What was on it goes by the others.
    pub fn remove_path(&mut self, now: Instant, id: PathId) {
        self.forget_path(now, id);
        self.deny_path(id);
    }

    /// Tells the peer that a path is gone, by each of the others: frames may be lost.
    pub fn deny_path(&mut self, id: PathId) {
        let gone = Frame::Path { path: id.0 as u8, state: PathState::Gone };
        self.paths.iter_mut().flatten().for_each(|path| path.frames.push(gone.clone()));
    }

    /// The path is not there any more, as the peer knows. What was on it goes by the others.
    pub fn forget_path(&mut self, now: Instant, id: PathId) {
        self.fail_path(now, id);
        if let Some(path) = self.paths.get_mut(id.index()).and_then(Option::take) {
            self.numbers[id.index()] = path.next_number();
        }
    }

    /// Another scheduler picks the paths from now on.
    pub fn set_scheduler(&mut self, scheduler: Box<dyn Scheduler>) {
        self.scheduler = scheduler;
        self.burst = None;
    }

    /// The path exists.
    #[must_use]
    pub fn has_path(&self, id: PathId) -> bool {
        self.path(id).is_some()
    }

    /// Pings all paths now: something about the peer is new.
    pub fn greet(&mut self) {
        self.paths.iter_mut().flatten().for_each(Path::hurry);
    }

    /// A parcel from the device, of a flow that hashes to `stream`.
    pub fn offer(&mut self, now: Instant, stream: u8, parcel: P) {
        self.last_data = Some(now);
        self.stirred = true;
        self.entrance.push(now, stream, parcel, &mut self.counters);
    }

    /// There is room for more from the device.
    #[must_use]
    pub fn has_room(&self) -> bool {
        self.entrance.bytes() < self.memory / 2
    }

    /// An authentic datagram with a piece arrived.
    pub fn receive_data(&mut self, now: Instant, arrival: Arrival, data: Data<P>) {
        let Some(Some(path)) = self.paths.get_mut(arrival.path.index()) else { return };
        self.last_data = Some(now);
        path.on_heard(now, Some(data.payload.len()));
        path.receipt.add(now, arrival.number, arrival.marked, true);
        let Self { exit, counters, paths, .. } = self;
        let in_use = |path: PathId| {
            let carried = paths.get(path.index()).and_then(Option::as_ref).and_then(Path::carried);
            carried.is_some_and(|at| now.since(at) < IN_USE)
        };
        exit.handle(now, arrival.path, data, arrival.marked, in_use, counters);
    }

    /// An authentic datagram with frames arrived.
    pub fn receive_control(&mut self, now: Instant, arrival: Arrival, frames: &[Frame]) {
        let Some(Some(path)) = self.paths.get_mut(arrival.path.index()) else { return };
        path.on_heard(now, None);
        path.receipt.add(now, arrival.number, arrival.marked, false);
        self.stirred = true;
        frames.iter().for_each(|frame| self.on_frame(now, arrival.path, frame));
    }

    fn on_frame(&mut self, now: Instant, from: PathId, frame: &Frame) {
        match frame {
            Frame::Ack(ack) => self.on_ack(now, ack),
            Frame::Ping { token } => {
                if let Some(Some(path)) = self.paths.get_mut(from.index()) {
                    path.frames.push(Frame::Pong { token: *token });
                }
            }
            Frame::Pong { token } => self.on_pong(now, from, *token),
            Frame::Hold { wait_us } => {
                self.exit.rules.hold = Span::from_micros(u64::from(*wait_us)).max(LEAST_HOLD).min(self.hold_most);
            }
            Frame::Path { path, state } => self.on_path_state(now, PathId(u16::from(*path)), *state),
            Frame::Close => self.events.push_back(Event::Closed),
        }
    }

    fn on_ack(&mut self, now: Instant, ack: &Ack) {
        let Some(Some(path)) = self.paths.get_mut(usize::from(ack.path)) else { return };
        let mut pilot = Pilot { controller: self.controller.as_deref_mut(), random: &mut self.random };
        if !path.on_ack(now, ack, &mut self.fates, &mut pilot) {
            self.counters.nonsense += 1;
        }
        self.settle_fates(now);
    }

    /// What became of pieces: arrived ones are let go, lost ones are sent again.
    fn settle_fates(&mut self, now: Instant) {
        let repair = self.repair;
        self.fates.acked.drain(..).for_each(|piece| self.pieces.on_acked(piece));
        for piece in self.fates.lost.drain(..) {
            let again = self.pieces.on_lost(piece, |born| repair && now.since(born) < REPAIR_FOR);
            self.counters.given_up += u64::from(!again);
        }
    }

    fn on_pong(&mut self, now: Instant, id: PathId, token: u64) {
        let Some(Some(path)) = self.paths.get_mut(id.index()) else { return };
        let mut pilot = Pilot { controller: self.controller.as_deref_mut(), random: &mut self.random };
        let (revived, grown) = path.on_pong(now, token, &mut pilot);
        if revived {
            self.events.push_back(Event::PathUp(id));
        }
        if let Some(size) = grown {
            self.events.push_back(Event::LargestFound(id, size));
        }
    }

    fn on_path_state(&mut self, now: Instant, id: PathId, state: PathState) {
        let Some(Some(path)) = self.paths.get_mut(id.index()) else { return };
        path.peer_backup = state == PathState::Backup;
        if state == PathState::Gone {
            self.forget_path(now, id);
            self.events.push_back(Event::PathGone(id));
        }
    }

    fn fail_path(&mut self, now: Instant, id: PathId) {
        let Some(Some(path)) = self.paths.get_mut(id.index()) else { return };
        let was_up = path.is_up();
        let mut pilot = Pilot { controller: self.controller.as_deref_mut(), random: &mut self.random };
        path.fail(now, &mut self.fates, &mut pilot);
        self.settle_fates(now);
        self.burst = None;
        if was_up {
            self.events.push_back(Event::PathDown(id));
        }
    }

    /// The host could not send a datagram on this path: the link is gone.
    pub fn on_unreachable(&mut self, now: Instant, id: PathId) {
        if self.path(id).is_some_and(Path::is_up) {
            self.fail_path(now, id);
        }
    }

    /// The host refused a datagram on this path as too large for its link.
    pub fn on_too_large(&mut self, now: Instant, id: PathId) {
        if let Some(Some(path)) = self.paths.get_mut(id.index()) {
            path.on_too_large(now);
        }
    }

    /// The next datagram to send, if one may leave now.
    pub fn poll_transmit(&mut self, now: Instant) -> Option<Transmit<P>> {
        let next = self.poll_control(now).or_else(|| self.poll_again(now)).or_else(|| self.poll_new(now));
        if next.is_none() && std::mem::take(&mut self.stirred) {
            self.end_round(now);
        }
        next
    }

    /// Frames of the latest [`Content::Control`].
    #[must_use]
    pub fn control(&self) -> &[Frame] {
        &self.control
    }

    fn habits(&self, now: Instant) -> Habits {
        Habits { busy: self.last_data.is_some_and(|last| now.since(last) < BUSY), probe: self.probe }
    }

    /// What goes up next.
    pub fn poll_delivery(&mut self) -> Option<Delivery<P>> {
        self.exit.pop()
    }

    /// What happened.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// When [`on_timeout`](Self::on_timeout) is due.
    #[must_use]
    pub fn deadline(&self, now: Instant) -> Instant {
        let habits = self.habits(now);
        let wants_more = self.has_new() || self.pieces.has_again();
        let of_path = |path: &Path| {
            let release = if wants_more && path.has_room() { path.release() } else { Instant::NEVER };
            // One that was released already waits for something else.
            let release = if release > now { release } else { Instant::NEVER };
            path.deadline(habits).min(release)
        };
        let paths = self.paths.iter().flatten().map(of_path).min().unwrap_or(Instant::NEVER);
        paths.min(self.exit.deadline())
    }

    /// Time has passed.
    pub fn on_timeout(&mut self, now: Instant) {
        self.stirred = true;
        self.exit.on_timeout(now, &mut self.counters);
        let up = self.paths.iter().flatten().filter(|path| path.is_up()).count();
        for index in 0..self.paths.len() {
            let Some(path) = &mut self.paths[index] else { continue };
            let mut pilot = Pilot { controller: self.controller.as_deref_mut(), random: &mut self.random };
            let alone = up <= 1;
            match path.on_timeout(now, alone, &mut self.fates, &mut pilot) {
                Timeout::Nothing => {}
                Timeout::Failed => self.fail_path(now, PathId(index as u16)),
                Timeout::Doubt => {
                    let most = if alone { DOUBTED } else { usize::MAX };
                    path.outstanding().take(most).for_each(|piece| self.pieces.on_doubt(piece));
                }
            }
        }
        self.settle_fates(now);
    }

    fn path(&self, id: PathId) -> Option<&Path> {
        self.paths.get(id.index()).and_then(Option::as_ref)
    }

    /// Its numbers.
    #[must_use]
    pub fn status(&self) -> Status {
        let paths = || self.paths.iter().flatten();
        Status {
            counters: self.counters,
            paths: paths().map(|path| PathStatus { behind: self.lateness(path), ..path.status() }).collect(),
            waiting: self.entrance.parcels(),
            waiting_bytes: self.entrance.bytes(),
            outstanding: self.pieces.next() - self.pieces.base(),
            held: self.exit.held(),
            hold: self.exit.rules.hold,
            piece: self.piece().unwrap_or(0),
        }
    }

    /// Tells the peer that this end goes away: to be followed by [`poll_transmit`](Self::poll_transmit).
    pub fn close(&mut self) {
        if let Some(path) = self.feedback_path().and_then(|best| self.paths[best.index()].as_mut()) {
            path.frames.push(Frame::Close);
        }
    }
}

fn announce(path: &mut Path, id: PathId) {
    let state = if path.is_backup() { PathState::Backup } else { PathState::Regular };
    path.frames.push(Frame::Path { path: id.0 as u8, state });
}
