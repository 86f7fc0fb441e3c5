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

use super::entrance::Entrance;
use super::exit::{Exit, Rules};
use super::path::{Fates, Habits, Path, Pilot, Timeout};
use super::pieces::Pieces;
use super::vocabulary::{
    Arrival, Content, Counters, Data, Delivery, Event, PathSetup, PathStatus, Payload, Setup, Status, Transmit,
};
use control::Controller;
use schedule::{Packet, Scheduler, View};
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
/// Feedback goes by each regular path at least this often while there is any.
const FEED: Span = Span::from_millis(25);
/// Pieces that are sent again on a doubtful path that has no other beside it: they ask whether it is there.
const DOUBTED: usize = 2;
/// The peer is told how long to wait this often at most, and eight times less often if nothing changed.
const HOLD_NEWS: Span = Span::from_millis(25);
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
    memory: u64,
    paths: Vec<Option<Path>>,
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
            memory: setup.memory,
            paths: Vec::new(),
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
                let mut path = Path::new(id, setup);
                announce(&mut path, id);
                *slot = Some(path);
            }
        }
    }

    /// The path is used no more, from now on. What was on it goes by the others.
    pub fn remove_path(&mut self, now: Instant, id: PathId) {
        self.fail_path(now, id);
        if let Some(slot) = self.paths.get_mut(id.index()) {
            *slot = None;
        }
        let gone = Frame::Path { path: id.0 as u8, state: PathState::Gone };
        if let Some(path) = self.feedback_path().and_then(|best| self.paths[best.index()].as_mut()) {
            path.frames.push(gone);
        }
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
            self.fail_path(now, id);
            self.paths[id.index()] = None;
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

    fn poll_control(&mut self, now: Instant) -> Option<Transmit<P>> {
        let habits = self.habits(now);
        for index in 0..self.paths.len() {
            let Some(path) = &mut self.paths[index] else { continue };
            let was_up = path.is_up();
            let ping = path.poll_ping(now, habits, &mut self.random);
            let failed = was_up && !path.is_up();
            let id = PathId(index as u16);
            if failed {
                self.fail_path(now, id);
                self.events.push_back(Event::PathDown(id));
                continue;
            }
            if let Some((token, size)) = ping {
                self.control.clear();
                self.control.push(Frame::Ping { token });
                let pad_to = size.map_or(0, |size| size - super::vocabulary::SEAL_BYTES);
                return self.frames_leave(now, id, pad_to);
            }
        }
        self.poll_feedback(now)
    }

    /// Frames that are bound to a path leave on it. What has arrived is told on the fastest path that seems to be there;
    /// now and then on each of the others too, so that no single path's failure silences all.
    fn poll_feedback(&mut self, now: Instant) -> Option<Transmit<P>> {
        let bound = self.paths.iter().position(|path| path.as_ref().is_some_and(|path| !path.frames.is_empty()));
        if let Some(index) = bound {
            self.control.clear();
            self.control.append(&mut self.paths[index].as_mut()?.frames);
            return self.frames_leave(now, PathId(index as u16), 0);
        }
        let news = self.hold_news(now);
        if news.is_none() && !self.paths.iter().flatten().any(|path| path.receipt.due() <= now) {
            return None;
        }
        let fastest = self.feedback_path()?;
        let starved = |path: &Path| path.is_up() && !path.is_backup() && now.since(path.fed) > FEED;
        let other = self.paths.iter().position(|path| path.as_ref().is_some_and(starved));
        let other = other.map(|index| PathId(index as u16)).filter(|other| *other != fastest);
        let chosen = other.unwrap_or(fastest);
        self.control.clear();
        self.control.extend(news);
        for (index, path) in self.paths.iter_mut().enumerate() {
            let Some(path) = path else { continue };
            let due = path.receipt.due();
            if due <= now {
                self.control.extend(path.receipt.tell(now, index as u8).map(Frame::Ack));
            }
            if other.is_some() && due <= now {
                path.receipt.tell_again(due);
            }
        }
        self.paths[chosen.index()].as_mut()?.fed = now;
        self.frames_leave(now, chosen, 0)
    }

    /// The path with the least round trip, among those that work and have lately been heard of; else the one that was
    /// heard of last.
    fn feedback_path(&self) -> Option<PathId> {
        let paths = || (0..).map(PathId).zip(&self.paths).filter_map(|(id, path)| Some((id, path.as_ref()?)));
        let latest = paths().filter_map(|(_, path)| path.heard()).max()?;
        let present = |path: &Path| path.heard().is_some_and(|heard| latest.since(heard) < path.patience());
        let fastest = paths().filter(|(_, path)| path.is_up() && present(path)).min_by_key(|(_, path)| path.srtt());
        fastest.or_else(|| paths().max_by_key(|(_, path)| path.heard())).map(|(id, _)| id)
    }

    fn frames_leave(&mut self, now: Instant, id: PathId, pad_to: u32) -> Option<Transmit<P>> {
        let number = self.paths[id.index()].as_mut()?.send_control(now);
        Some(Transmit { path: id, number, content: Content::Control { pad_to } })
    }

    /// How long the peer should wait for a missing piece, if it is time to tell: while data is on its way, and when there
    /// is something new.
    fn hold_news(&mut self, now: Instant) -> Option<Frame> {
        let (told, at) = self.told;
        if now.since(at) < HOLD_NEWS || self.pieces.bytes() == 0 {
            return None;
        }
        let hold = self.hold();
        if hold.0.abs_diff(told.0) < told.0 / 8 && now.since(at) < HOLD_NEWS * 8 {
            return None;
        }
        self.told = (hold, now);
        Some(Frame::Hold { wait_us: hold.as_micros().min(u64::from(u32::MAX)) as u32 })
    }

    /// The difference of the paths' delays and their jitter; where lost pieces are sent again, the time to doubt a path that
    /// fails (its last acknowledgement may come nearly as late again) and to send what was on it, all of it, by another.
    fn hold(&self) -> Span {
        let up = || self.paths.iter().flatten().filter(|path| path.is_up());
        let delays = || up().filter_map(Path::one_way);
        let latest = delays().map(|(mean, deviation)| mean + 4 * deviation).max().unwrap_or(0);
        let earliest = delays().map(|(mean, _)| mean).min().unwrap_or(0);
        let spread = Span::from_micros((latest - earliest).max(0) as u64);
        if !self.repair {
            return spread + LEAST_HOLD;
        }
        let find = up().map(Path::doubtful_after).max().unwrap_or(FIRST_HOLD);
        let repair = up().map(Path::patience).min().unwrap_or(FIRST_HOLD);
        spread + find * 2 + repair * 2 + LEAST_HOLD
    }

    /// A lost piece goes first, by the fastest path that has room and carries its size.
    fn poll_again(&mut self, now: Instant) -> Option<Transmit<P>> {
        loop {
            let (_, bytes) = self.pieces.first_again()?;
            let up = (0..).map(PathId).zip(&self.paths).filter_map(|(id, path)| Some((id, path.as_ref()?)));
            let mut fitting = up.filter(|(_, path)| path.is_up() && path.piece() >= bytes).peekable();
            if fitting.peek().is_none() {
                if !self.paths.iter().flatten().any(Path::is_up) {
                    return None;
                }
                self.pieces.give_up_again();
                self.counters.given_up += 1;
                continue;
            }
            let open = fitting.filter(|(_, path)| path.is_open(now));
            let (path, _) = open.min_by_key(|(_, path)| (path.is_backup(), path.srtt()))?;
            let Some((number, data)) = self.pieces.take_again() else { continue };
            self.counters.repaired += 1;
            return self.data_leaves(now, path, number, data);
        }
    }

    fn data_leaves(&mut self, now: Instant, path: PathId, number: u64, data: Data<P>) -> Option<Transmit<P>> {
        self.pieces.on_sent(number, path);
        let mut pilot = Pilot { controller: self.controller.as_deref_mut(), random: &mut self.random };
        let state = self.paths[path.index()].as_mut()?;
        let number = state.send(now, number, data.payload.len(), &mut pilot);
        self.stirred = true;
        Some(Transmit { path, number, content: Content::Data(data) })
    }

    fn poll_new(&mut self, now: Instant) -> Option<Transmit<P>> {
        if !self.has_new() {
            return None;
        }
        let piece = self.piece()?;
        if self.cut.is_none() && self.entrance.next_is_sparse(piece) {
            // It is little, and may wait behind nothing: not even for a window.
            let fastest = self.fastest_regular()?;
            return self.send_next(now, fastest, piece);
        }
        if self.pieces.bytes() > self.memory {
            return None;
        }
        if let Some((path, left)) = self.burst.filter(|(_, left)| *left > 0)
            && self.path(path).is_some_and(|path| path.is_open(now))
        {
            self.burst = Some((path, left - 1));
            return self.send_next(now, path, piece);
        }
        self.pick(now, piece)
    }

    fn has_new(&self) -> bool {
        self.cut.is_some() || self.entrance.parcels() > 0
    }

    /// Payload of a piece that every path in use carries.
    fn piece(&self) -> Option<u32> {
        self.paths.iter().flatten().filter(|path| path.is_up()).map(Path::piece).min()
    }

    fn fastest_regular(&self) -> Option<PathId> {
        let up = (0..).map(PathId).zip(&self.paths).filter_map(|(id, path)| Some((id, path.as_ref()?)));
        let up = up.filter(|(_, path)| path.is_up());
        up.min_by_key(|(_, path)| (path.is_backup(), path.srtt())).map(|(id, _)| id)
    }

    fn pick(&mut self, now: Instant, piece: u32) -> Option<Transmit<P>> {
        self.burst = None;
        self.views.clear();
        let absent = schedule::Path { open: false, active: false, ..schedule::Path::unmeasured() };
        self.views.extend(self.paths.iter().map(|path| path.as_ref().map_or(absent, |path| path.view(now))));
        let rest = self.cut.as_ref().map_or(0, |cut| cut.length - cut.from);
        let view = View {
            now,
            bytes: piece,
            paths: &self.views,
            next: self.pieces.next(),
            acknowledged: self.pieces.base(),
            unsent: (self.entrance.bytes() + u64::from(rest)).div_ceil(u64::from(piece)),
            room: u64::MAX,
            blocked: 0,
        };
        let pick = self.scheduler.pick(&view)?;
        let path = self.path(pick.path).filter(|path| path.is_open(now))?;
        if pick.packet == Packet::Oldest {
            return self.send_copy(now, pick.path).or_else(|| self.send_next(now, pick.path, piece));
        }
        self.burst = Some((pick.path, path.burst().saturating_sub(1)));
        self.send_next(now, pick.path, piece)
    }

    /// The oldest piece on its way that this path has not carried.
    fn send_copy(&mut self, now: Instant, id: PathId) -> Option<Transmit<P>> {
        let path = self.paths[id.index()].as_mut()?;
        let (number, data) = self.pieces.oldest_not_carried(id, path.copied_up_to)?;
        path.copied_up_to = number + 1;
        if path.piece() < data.payload.len() {
            return None;
        }
        self.counters.copies += 1;
        self.data_leaves(now, id, number, data)
    }

    /// The next piece of the parcel under the knife, or the first one of the next parcel.
    fn send_next(&mut self, now: Instant, path: PathId, piece: u32) -> Option<Transmit<P>> {
        let cut = match self.cut.take() {
            Some(cut) => cut,
            None => {
                let (stream, parcel) = self.entrance.pop(now, &mut self.counters)?;
                Cut { stream, from: 0, length: parcel.len(), parcel }
            }
        };
        let to = cut.length.min(cut.from + piece);
        let sequence = &mut self.sequences[usize::from(cut.stream)];
        let data = Data {
            stream: cut.stream,
            sequence: *sequence,
            first: cut.from == 0,
            last: to == cut.length,
            again: false,
            payload: cut.parcel.slice(cut.from, to),
        };
        *sequence = sequence.wrapping_add(1);
        if to < cut.length {
            self.cut = Some(Cut { from: to, ..cut });
        }
        self.counters.pieces += 1;
        let number = self.pieces.push(now, &data);
        self.data_leaves(now, path, number, data)
    }

    fn end_round(&mut self, now: Instant) {
        let starved = !self.has_new();
        let mut pilot = Pilot { controller: self.controller.as_deref_mut(), random: &mut self.random };
        self.paths.iter_mut().flatten().for_each(|path| path.end_round(now, starved, &mut pilot));
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
        let earliest = paths().filter(|path| path.is_up()).filter_map(Path::one_way).map(|(mean, _)| mean).min();
        let behind = |path: &Path| {
            let late = path.one_way().zip(earliest).map_or(0, |((mean, _), earliest)| mean - earliest);
            Span::from_micros(late.max(0) as u64)
        };
        Status {
            counters: self.counters,
            paths: paths().map(|path| PathStatus { behind: behind(path), ..path.status() }).collect(),
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
