//! A small MPTCP-like sender, as simple as the contract of a scheduler allows: numbers instead of packets,
//! acknowledgements when the test says so. It checks each pick against the promises.

use schedule::{Fill, PacketChoice, PathView, Pick, Scheduler, SchedulerEntry, SchedulerView};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use units::{Instant, Rate, Span};

/// What can happen.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Act {
    /// The source writes so many packets.
    Write(u64),
    /// So many packets of a path are acknowledged, the oldest first.
    Acknowledge(usize, usize),
    /// A path's window, packets.
    Window(usize, u32),
    /// A path's smoothed RTT, and what is delivered over it, packets an RTT; 0 takes the measurement away.
    Measure(usize, u64, u32),
    /// A path fails; what it held goes over the others.
    Die(usize),
    /// A path is there (again), as a backup or not.
    Live(usize, bool),
    /// The far end's buffer, packets.
    Buffer(u64),
    /// Data stood still.
    Block,
    /// Milliseconds pass.
    Wait(u64),
}

/// Bytes of a packet.
const BYTES: u32 = 1448;
/// Packets that wait at a path beyond its window, at most.
const SEND_BUFFER: u32 = 40;

/// One path's end.
#[derive(Debug, Default)]
struct Lane {
    /// Numbers that the path holds, oldest first; a window of them is in flight.
    held: VecDeque<u64>,
    /// All numbers that it has carried.
    carried: BTreeSet<u64>,
}

/// The sender.
#[derive(Debug)]
pub(crate) struct World {
    entry: &'static SchedulerEntry,
    scheduler: Box<dyn Scheduler>,
    paths: Vec<PathView>,
    lanes: Vec<Lane>,
    now: Instant,
    /// Numbers below this exist.
    written: u64,
    unsent: BTreeSet<u64>,
    delivered: BTreeSet<u64>,
    again: BTreeSet<u64>,
    acknowledged: u64,
    buffer: u64,
    blocked: u64,
    /// All picks.
    pub(crate) picks: Vec<Pick>,
}

impl World {
    /// So many paths of 20, 40, 60 ... ms, each with a window of ten.
    pub(crate) fn new(entry: &'static SchedulerEntry, paths: u64) -> Self {
        let scheduler = entry.scheduler(&[], 0, &BTreeMap::new()).expect("defaults");
        let lanes = (0..paths).map(|_| Lane::default()).collect();
        let paths = (1..=paths).map(|path| measured(PathView::unmeasured(), 20 * path, 10));
        let paths = paths.map(|path| PathView { cwnd: 10, ssthresh: units::INFINITE_SSTHRESH, ..path }).collect();
        let [unsent, delivered, again] = [const { BTreeSet::new() }; 3];
        let (now, picks) = (Instant::ZERO, Vec::new());
        let (written, acknowledged, buffer, blocked) = (0, 0, 1000, 0);
        Self {
            entry,
            scheduler,
            paths,
            lanes,
            now,
            written,
            unsent,
            delivered,
            again,
            acknowledged,
            buffer,
            blocked,
            picks,
        }
    }

    /// Something happens, and then all is sent that may be.
    pub(crate) fn act(&mut self, act: Act) {
        self.happen(act);
        self.repeat();
        self.round();
    }

    fn happen(&mut self, act: Act) {
        match act {
            Act::Write(packets) => self.write(packets),
            Act::Acknowledge(path, packets) => self.acknowledge(path, packets),
            Act::Window(path, window) => self.paths[path].cwnd = window,
            Act::Measure(path, srtt, packets) => self.paths[path] = measured(self.paths[path], srtt, packets),
            Act::Die(path) => self.die(path),
            Act::Live(path, backup) => (self.paths[path].active, self.paths[path].backup) = (true, backup),
            Act::Buffer(packets) => self.buffer = packets,
            Act::Block => self.blocked += 1,
            Act::Wait(ms) => self.now += Span::from_millis(ms),
        }
    }

    fn write(&mut self, packets: u64) {
        self.unsent.extend(self.written..self.written + packets);
        self.written += packets;
    }

    fn acknowledge(&mut self, path: usize, packets: usize) {
        let lane = &mut self.lanes[path];
        let packets = packets.min(lane.held.len()).min(self.paths[path].cwnd as usize);
        self.delivered.extend(lane.held.drain(..packets));
        while self.delivered.contains(&self.acknowledged) {
            self.acknowledged += 1;
        }
    }

    fn die(&mut self, path: usize) {
        self.paths[path].active = false;
        let lost: Vec<_> = self.lanes[path].held.drain(..).collect();
        self.again.extend(lost.into_iter().filter(|number| !self.delivered.contains(number)));
    }

    /// Counts packets and opens paths.
    fn refresh(&mut self) {
        for (path, lane) in self.paths.iter_mut().zip(&self.lanes) {
            let held = lane.held.len() as u32;
            path.in_flight = held.min(path.cwnd);
            path.queued = held - path.in_flight;
            let limit = match self.entry.fill {
                Fill::Cwnd => path.cwnd,
                Fill::SendBuffer => path.cwnd + SEND_BUFFER,
            };
            path.has_room = path.active && held < limit;
        }
    }

    fn edge(&self) -> u64 {
        self.acknowledged + self.buffer
    }

    /// What dead paths held, over the paths that may be used.
    fn repeat(&mut self) {
        self.refresh();
        let regular = self.paths.iter().any(|path| path.active && !path.backup);
        while let Some(number) = self.again.first().copied() {
            let Some(path) = self.paths.iter().position(|path| path.has_room && path.backup != regular) else { return };
            self.again.pop_first();
            self.give(path, number);
            self.refresh();
        }
    }

    fn give(&mut self, path: usize, number: u64) {
        self.unsent.remove(&number);
        self.lanes[path].carried.insert(number);
        self.lanes[path].held.push_back(number);
    }

    /// Asks until the scheduler waits.
    fn round(&mut self) {
        self.refresh();
        let mut closed = vec![false; self.paths.len()];
        let mut first = true;
        loop {
            closed.iter().zip(&mut self.paths).for_each(|(closed, path)| path.has_room &= !closed);
            let Some(pick) = self.ask(first) else { return };
            first = false;
            match self.number(pick) {
                Some(number) => self.give(pick.path.index(), number),
                None => closed[pick.path.index()] = true,
            }
            self.refresh();
        }
    }

    /// One pick, checked.
    fn ask(&mut self, first: bool) -> Option<Pick> {
        let next = self.unsent.first().copied().unwrap_or(self.written);
        let (now, acknowledged, blocked) = (self.now, self.acknowledged, self.blocked);
        let (unsent, room) = (self.unsent.len() as u64, self.edge().saturating_sub(next));
        let view = SchedulerView {
            now,
            packet_bytes: BYTES,
            paths: &self.paths,
            snd_nxt: next,
            snd_una: acknowledged,
            unsent,
            rwnd_left: room,
            rwnd_stalls: blocked,
        };
        let pick = self.scheduler.pick(&view);
        let name = self.entry.name;
        let Some(pick) = pick else {
            let idle = view.paths_with_room().next().is_some()
                && view.usable_paths().all(|(_, path)| path.buffered_packets() == 0);
            let stuck = first && idle && view.sendable_packets() > 0;
            assert!(!stuck, "{name} waits, and nothing is under way that could end it: {view:?}");
            return None;
        };
        let path = &self.paths[pick.path.index()];
        assert!(path.has_room, "{name} picks a closed path");
        let regular = self.paths.iter().any(|path| path.active && !path.backup);
        assert!(!path.backup || !regular, "{name} picks a backup while a regular path is active");
        assert!(
            self.entry.fill == Fill::SendBuffer || path.buffered_packets() < path.cwnd,
            "{name} overfills a window"
        );
        assert!(
            pick.packet == PacketChoice::OldestUnacked || view.sendable_packets() > 0,
            "{name} picks new data where there are none"
        );
        self.picks.push(pick);
        Some(pick)
    }

    /// The packet that was picked, if there is one.
    fn number(&self, pick: Pick) -> Option<u64> {
        let number = match pick.packet {
            PacketChoice::Next => self.unsent.first().copied(),
            PacketChoice::SkipAhead(others) => self.unsent.iter().nth(others as usize).copied(),
            PacketChoice::OldestUnacked => {
                let carried = &self.lanes[pick.path.index()].carried;
                (self.acknowledged..self.written).find(|number| !carried.contains(number))
            }
        };
        number.filter(|number| *number < self.edge() || !self.unsent.contains(number))
    }

    /// Acknowledges all that is in flight, round by round, until the source's data are home.
    pub(crate) fn finish(&mut self) {
        let most = 2 * self.written + 100;
        for _ in 0..most {
            if self.acknowledged == self.written {
                return;
            }
            (0..self.paths.len()).for_each(|path| self.happen(Act::Acknowledge(path, usize::MAX)));
            self.act(Act::Wait(20));
        }
        let (name, acknowledged, written) = (self.entry.name, self.acknowledged, self.written);
        panic!("{name} is at {acknowledged} of {written} after {most} rounds: {:?}", self.paths);
    }

    /// The numbers that a path has carried.
    pub(crate) fn carried(&self, path: usize) -> Vec<u64> {
        self.lanes[path].carried.iter().copied().collect()
    }
}

fn measured(path: PathView, srtt: u64, packets: u32) -> PathView {
    let [srtt, deviation] = [srtt, srtt / 8].map(Span::from_millis);
    let rate = Rate::of(u64::from(packets) * u64::from(BYTES), srtt);
    PathView { srtt, rttvar: deviation, pacing_rate: rate, delivery_rate: rate, ..path }
}
