//! A sender that keeps its books straight, driven by arbitrary acts, and the promises that every controller keeps.

use control::Entry;
use control::{
    Cause, Context, Controller, Decision, Delivery, Event, Feedback, NO_THRESHOLD, PathInfo, Phase, Reduction, Sent,
    Value,
};
use std::collections::BTreeMap;
use units::{Instant, PathId, Span, Stream};

/// Algorithms that grow while the window is not filled, and why they may.
const GROW_UNFILLED: &[(&str, &str)] = &[
    ("vegas", "the queueing delay tells it what the path carries"),
    ("bbr", "its window follows the model; samples of an idle application do not enter it"),
    ("bbr3", "as bbr"),
    ("wvegas", "as vegas"),
    ("coupled-bbr", "as bbr"),
    ("c-mpbbr", "as bbr"),
];

/// Algorithms that do not return to the old window on undo, and why.
pub(crate) const KEEP_ON_UNDO: &[(&str, &str)] = &[
    ("bbr", "loss did not cut its window in the first place"),
    ("bbr3", "loss does not set its threshold; what it did to the bounds is undone"),
    ("copa", "loss does not cut its window"),
    ("coupled-bbr", "as bbr"),
    ("c-mpbbr", "as bbr"),
];

/// Algorithms for which the end of an episode, undone or not, sets window and threshold anew, and by what.
pub(crate) const SETTLE_ANEW: &[(&str, &str)] = &[("westwood", "the measured bandwidth (Linux CA_EVENT_COMPLETE_CWR)")];

/// Algorithms for which loss takes more in a window that a mark has cut already, and why.
pub(crate) const LOSS_DEEPENS: &[(&str, &str)] =
    &[("dctcp", "a mark costs a share of alpha, loss always half (Linux dctcp_react_to_loss)")];

pub(crate) fn excused(table: &[(&str, &str)], entry: &Entry) -> bool {
    table.iter().any(|(name, _)| *name == entry.name)
}

/// No algorithm goes below this by itself outside a reduction.
pub(crate) fn least_window(entry: &Entry) -> u32 {
    match entry.name {
        "bbr" | "bbr3" | "coupled-bbr" | "c-mpbbr" => 4,
        // Early congestion seen twice leaves one packet (Kuzmanovic and Knightly).
        "lp" => 1,
        _ => 2,
    }
}

/// One thing that can happen on a path. Numbers are clipped to what is possible at that moment.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Act {
    /// Send up to so many packets, as the window allows; lost ones first.
    Send(u32),
    /// One acknowledgement.
    Ack {
        acked: u32,
        lost: u32,
        rtt_us: u64,
        window_limited: bool,
        app_limited: bool,
    },
    /// An ECN echo.
    Mark,
    LocalDrop,
    Timeout,
    /// The latest reduction proves wrong.
    Undo,
    ProbeRepair,
    ApplicationLimited(u32),
    Mss(u32),
    /// Milliseconds pass.
    Wait(u64),
    /// The path goes down if it is up, and comes up if it is down.
    Toggle,
}

/// The books of one path.
#[derive(Debug, Default)]
struct Path {
    /// Nothing happens on it until it comes up again.
    down: bool,
    next: u64,
    in_flight: u32,
    lost: u32,
    sacked: u32,
    delivered: u64,
    delivered_at_send: u64,
    /// Packets ever lost, and what the newest packet found when it was sent.
    ever_lost: u32,
    lost_at_send: u32,
    in_flight_at_send: u32,
    sent: u32,
    last_send: Instant,
    phase: Phase,
    /// The episode ends when everything up to here is acknowledged.
    high: u64,
    undoable: bool,
    srtt: Span,
    min_rtt: Option<Span>,
}

impl Path {
    fn una(&self) -> u64 {
        self.next - u64::from(self.in_flight) - u64::from(self.lost) - u64::from(self.sacked)
    }
}

/// One algorithm in charge of three paths. Every call is checked.
pub(crate) struct World {
    /// A path controller below the coupling has its own reasons to raise the window.
    paired: bool,
    entry: &'static Entry,
    controller: Box<dyn Controller>,
    random: Stream,
    now: Instant,
    paths: [Path; 3],
}

pub(crate) const INFO: PathInfo = PathInfo {
    mss: 1448,
    initial_window: 10,
    rtt: None,
    tick: Span::from_millis(1),
    clamp: u32::MAX / 2,
    reduction: Reduction::Proportional,
};

impl World {
    /// Three fresh paths.
    pub(crate) fn new(entry: &'static Entry) -> Self {
        Self::with(entry, &BTreeMap::new())
    }

    /// The same with these parameters.
    pub(crate) fn with(entry: &'static Entry, given: &BTreeMap<String, Value>) -> Self {
        let controller = entry.controller(given).expect("allowed");
        let paired = given.get("path").is_some_and(|path| *path != Value::Word("reno".to_owned()));
        let random = Stream::named(1, "controller");
        let mut world = Self { paired, entry, controller, random, now: Instant::ZERO, paths: Default::default() };
        (0..world.paths.len()).for_each(|path| world.bring_up(path));
        world
    }

    /// The path comes up, for the first time or again; with the same luck, so that its lives can be compared.
    pub(crate) fn bring_up(&mut self, path: usize) {
        self.paths[path] = Path { last_send: self.now, ..Path::default() };
        self.random = Stream::named(1, "controller");
        let event = Event::PathUp(INFO);
        self.controller.on_event(PathId(path as u16), &event, &mut context(self.now, &mut self.random));
    }

    pub(crate) fn decision(&self, path: usize) -> Decision {
        self.controller.decision(PathId(path as u16))
    }

    pub(crate) fn act(&mut self, path: usize, act: Act) {
        if self.paths[path].down {
            if matches!(act, Act::Toggle) {
                self.bring_up(path);
            }
            return;
        }
        match act {
            Act::Toggle => {
                self.tell(path, &Event::PathDown);
                self.paths[path].down = true;
            }
            Act::Send(count) => self.send(path, count),
            Act::Ack { acked, lost, rtt_us, window_limited, app_limited } => {
                let rtt = Span::from_micros(rtt_us);
                self.ack(path, acked, lost, rtt, (window_limited, app_limited));
            }
            Act::Mark => self.cut(path, Cause::Mark),
            Act::LocalDrop => self.cut(path, Cause::LocalDrop),
            Act::Timeout => self.timeout(path),
            Act::Undo => self.undo(path),
            Act::ProbeRepair => self.probe_repair(path),
            Act::ApplicationLimited(used) if self.paths[path].phase == Phase::Open => {
                self.tell(path, &Event::ApplicationLimited { used });
            }
            Act::ApplicationLimited(_) => {}
            Act::Mss(mss) => self.tell(path, &Event::MssChanged { mss }),
            Act::Wait(millis) => self.now += Span::from_millis(millis),
        }
    }

    fn send(&mut self, path: usize, count: u32) {
        let window = self.decision(path).window;
        let now = self.now;
        let books = &mut self.paths[path];
        let count = count.min(window.saturating_sub(books.in_flight));
        if count == 0 {
            return;
        }
        let empty = books.una() == books.next;
        let idle = now.since(books.last_send);
        let again = count.min(books.lost);
        books.lost -= again;
        books.in_flight += count;
        books.next += u64::from(count - again);
        books.sent += count;
        books.last_send = now;
        books.delivered_at_send = books.delivered;
        (books.lost_at_send, books.in_flight_at_send) = (books.ever_lost, books.in_flight);
        if empty {
            self.tell(path, &Event::Restart { idle, timeout: Span::from_millis(250) });
        }
    }

    fn ack(&mut self, path: usize, acked: u32, lost: u32, rtt: Span, (window_limited, app_limited): (bool, bool)) {
        let books = &mut self.paths[path];
        let (una_before, in_flight_before) = (books.una(), books.in_flight);
        let acked = acked.min(books.in_flight);
        books.in_flight -= acked;
        let lost = lost.min(books.in_flight);
        books.in_flight -= lost;
        books.lost += lost;
        books.ever_lost += lost;
        books.delivered += u64::from(acked);
        books.sacked = if books.lost == 0 { 0 } else { books.sacked + acked };
        if acked > 0 {
            books.srtt = rtt;
            books.min_rtt = Some(books.min_rtt.map_or(rtt, |least| least.min(rtt)));
        }
        if lost > 0 {
            self.cut(path, Cause::Loss);
        }
        self.leave_episode(path);
        let books = &mut self.paths[path];
        let sample = Delivery {
            packets: (books.delivered - books.delivered_at_send) as u32,
            interval: rtt,
            prior_delivered: books.delivered_at_send,
            app_limited,
            ack_delayed: false,
        };
        let newest = Sent {
            in_flight: books.in_flight_at_send,
            lost: books.ever_lost - books.lost_at_send,
            app_limited,
            ..Sent::default()
        };
        let feedback = Feedback {
            acked,
            released: acked,
            lost,
            newest: (acked > 0).then_some(newest),
            newest_lost: (lost > 0).then_some(newest),
            sent: std::mem::take(&mut books.sent),
            in_flight_before,
            in_flight: books.in_flight,
            rtt: (acked > 0).then_some(rtt),
            srtt: books.srtt,
            min_rtt: books.min_rtt.unwrap_or(Span::MAX),
            delivery: (acked > 0).then_some(sample),
            delivered: books.delivered,
            una: books.una(),
            next: books.next,
            advanced: books.una() > una_before,
            window_limited,
            may_grow: books.una() > una_before,
            phase: books.phase,
            ..Feedback::default()
        };
        self.tell(path, &Event::Feedback(feedback));
    }

    /// Loss, mark or local drop: an episode begins, unless a graver one is under way.
    fn cut(&mut self, path: usize, cause: Cause) {
        let to = if cause == Cause::Loss { Phase::Recovery } else { Phase::Cwr };
        let books = &mut self.paths[path];
        let begins = books.phase < to;
        if begins && books.phase < Phase::Cwr {
            books.high = books.next;
            books.sent = 0;
        }
        books.undoable = begins && cause == Cause::Loss;
        let in_flight = books.in_flight;
        // Told before the phase is noted: the promises are about the phase in which it struck.
        if begins || cause != Cause::Loss {
            self.tell(path, &Event::Congestion { cause, cut: true, in_flight });
        }
        let books = &mut self.paths[path];
        books.phase = books.phase.max(to);
    }

    fn leave_episode(&mut self, path: usize) {
        let books = &mut self.paths[path];
        if books.phase >= Phase::Cwr && books.una() >= books.high {
            let reduced = books.phase < Phase::Loss;
            books.phase = Phase::Open;
            if reduced {
                self.tell(path, &Event::Recovered { settle: true });
            }
        }
    }

    fn timeout(&mut self, path: usize) {
        let books = &mut self.paths[path];
        if books.una() == books.next {
            return;
        }
        let cut = books.phase < Phase::Cwr || books.una() >= books.high;
        books.lost += books.in_flight;
        books.in_flight = 0;
        books.undoable |= cut;
        books.phase = Phase::Loss;
        books.high = books.next;
        self.tell(path, &Event::Congestion { cause: Cause::Timeout, cut, in_flight: 0 });
    }

    fn undo(&mut self, path: usize) {
        let books = &mut self.paths[path];
        if std::mem::take(&mut books.undoable) {
            let reduced = matches!(books.phase, Phase::Cwr | Phase::Recovery);
            books.phase = Phase::Open;
            self.tell(path, &Event::SpuriousLoss);
            if reduced {
                self.tell(path, &Event::Recovered { settle: false });
            }
        }
    }

    fn probe_repair(&mut self, path: usize) {
        let books = &self.paths[path];
        if books.phase < Phase::Cwr {
            let in_flight = books.in_flight;
            self.tell(path, &Event::Congestion { cause: Cause::ProbeRepair, cut: true, in_flight });
        }
    }

    fn tell(&mut self, path: usize, event: &Event) {
        let before = self.decision(path);
        self.controller.on_event(PathId(path as u16), event, &mut context(self.now, &mut self.random));
        let after = self.decision(path);
        self.check(path, event, before, after);
    }

    fn check(&self, path: usize, event: &Event, before: Decision, after: Decision) {
        let (name, phase) = (self.entry.name, self.paths[path].phase);
        let says = || format!("{name} on {event:?} in {phase:?}: {before:?} became {after:?}");
        assert!((1..=NO_THRESHOLD).contains(&after.window), "a window is at least one packet and finite: {}", says());
        assert!((2..=NO_THRESHOLD).contains(&after.threshold), "the threshold is at least two packets: {}", says());
        assert!(after.pacing.is_none_or(|rate| rate.as_bits() > 0), "a rate of zero never sends: {}", says());
        if phase < Phase::Cwr && !matches!(event, Event::Congestion { .. }) {
            let least = least_window(self.entry).min(before.window);
            assert!(after.window >= least, "below its minimum outside a reduction: {}", says());
        }
        if let Event::Feedback(feedback) = event {
            let may_rise = feedback.window_limited
                || matches!(feedback.phase, Phase::Cwr | Phase::Recovery)
                || excused(GROW_UNFILLED, self.entry)
                || self.paired;
            assert!(may_rise || after.window <= before.window, "grew though the window is not filled: {}", says());
        }
        if let Event::Congestion { cause, cut, .. } = event {
            let deepens = *cause == Cause::Loss && phase == Phase::Cwr && excused(LOSS_DEEPENS, self.entry);
            let paid = !cut || phase >= Phase::Cwr && !matches!(cause, Cause::Timeout) && !deepens;
            assert!(!paid || after.threshold == before.threshold, "cut twice in one window: {}", says());
        }
    }
}

fn context(now: Instant, random: &mut Stream) -> Context<'_> {
    Context { now, random }
}
