//! A sender that keeps its books straight, driven by arbitrary acts, and the promises that every controller keeps.

use control::{
    AckSample, AlgorithmEntry, CaState, Cause, Context, Controller, Decision, Deviation, ParamValue, PathEvent,
    PathInfo, RateSample, Reduction, SendState,
};
use std::collections::BTreeMap;
use units::{INFINITE_SSTHRESH, Instant, PathId, RngStream, Span};

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
    ca_state: CaState,
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
    entry: &'static AlgorithmEntry,
    controller: Box<dyn Controller>,
    rng: RngStream,
    now: Instant,
    paths: [Path; 3],
}

pub(crate) const INFO: PathInfo = PathInfo {
    mss: 1448,
    initial_window: 10,
    rtt: None,
    tick: Span::from_millis(1),
    cwnd_clamp: u32::MAX / 2,
    reduction: Reduction::Proportional,
};

impl World {
    /// Three fresh paths.
    pub(crate) fn new(entry: &'static AlgorithmEntry) -> Self {
        Self::with(entry, &BTreeMap::new())
    }

    /// The same with these parameters.
    pub(crate) fn with(entry: &'static AlgorithmEntry, given: &BTreeMap<String, ParamValue>) -> Self {
        let controller = entry.controller(given).expect("allowed");
        let paired = given.get("path").is_some_and(|path| *path != ParamValue::Choice("reno".to_owned()));
        let rng = RngStream::named(1, "controller");
        let mut world = Self { paired, entry, controller, rng, now: Instant::ZERO, paths: Default::default() };
        (0..world.paths.len()).for_each(|path| world.bring_up(path));
        world
    }

    /// The path comes up, for the first time or again; with the same luck, so that its lives can be compared.
    pub(crate) fn bring_up(&mut self, path: usize) {
        self.paths[path] = Path { last_send: self.now, ..Path::default() };
        self.rng = RngStream::named(1, "controller");
        let event = PathEvent::PathUp(INFO);
        self.controller.on_event(PathId(path as u16), &event, &mut context(self.now, &mut self.rng));
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
                self.tell(path, &PathEvent::PathDown);
                self.paths[path].down = true;
            }
            Act::Send(count) => self.send(path, count),
            Act::Ack { acked, lost, rtt_us, window_limited, app_limited } => {
                let rtt = Span::from_micros(rtt_us);
                self.ack(path, acked, lost, rtt, (window_limited, app_limited));
            }
            Act::Mark => self.cut(path, Cause::EcnMark),
            Act::LocalDrop => self.cut(path, Cause::LocalDrop),
            Act::Timeout => self.timeout(path),
            Act::Undo => self.undo(path),
            Act::ProbeRepair => self.probe_repair(path),
            Act::ApplicationLimited(used) if self.paths[path].ca_state == CaState::Open => {
                self.tell(path, &PathEvent::ApplicationLimited { cwnd_used: used });
            }
            Act::ApplicationLimited(_) => {}
            Act::Mss(mss) => self.tell(path, &PathEvent::MssChanged { mss }),
            Act::Wait(millis) => self.now += Span::from_millis(millis),
        }
    }

    fn send(&mut self, path: usize, count: u32) {
        let window = self.decision(path).cwnd;
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
            self.tell(path, &PathEvent::IdleRestart { idle, rto: Span::from_millis(250) });
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
        let sample = RateSample {
            delivered: (books.delivered - books.delivered_at_send) as u32,
            interval: rtt,
            prior_delivered: books.delivered_at_send,
            app_limited,
            ack_delayed: false,
        };
        let newest = SendState {
            tx_in_flight: books.in_flight_at_send,
            lost: books.ever_lost - books.lost_at_send,
            app_limited,
            ..SendState::default()
        };
        let sample = AckSample {
            acked,
            pkts_acked: acked,
            lost,
            newest_delivered: (acked > 0).then_some(newest),
            newest_lost: (lost > 0).then_some(newest),
            sent: std::mem::take(&mut books.sent),
            prior_in_flight: in_flight_before,
            in_flight: books.in_flight,
            rtt: (acked > 0).then_some(rtt),
            srtt: books.srtt,
            min_rtt: books.min_rtt.unwrap_or(Span::MAX),
            rate_sample: (acked > 0).then_some(sample),
            delivered: books.delivered,
            snd_una: books.una(),
            snd_nxt: books.next,
            una_advanced: books.una() > una_before,
            cwnd_limited: window_limited,
            may_raise_cwnd: books.una() > una_before,
            ca_state: books.ca_state,
            ..AckSample::default()
        };
        self.tell(path, &PathEvent::Ack(sample));
    }

    /// Loss, mark or local drop: an episode begins, unless a graver one is under way.
    fn cut(&mut self, path: usize, cause: Cause) {
        let to = if cause == Cause::Loss { CaState::Recovery } else { CaState::Cwr };
        let books = &mut self.paths[path];
        let begins = books.ca_state < to;
        if begins && books.ca_state < CaState::Cwr {
            books.high = books.next;
            books.sent = 0;
        }
        books.undoable = begins && cause == Cause::Loss;
        let in_flight = books.in_flight;
        // Told before the phase is noted: the promises are about the phase in which it struck.
        if begins || cause != Cause::Loss {
            self.tell(path, &PathEvent::Congestion { cause, reduce_cwnd: true, in_flight });
        }
        let books = &mut self.paths[path];
        books.ca_state = books.ca_state.max(to);
    }

    fn leave_episode(&mut self, path: usize) {
        let books = &mut self.paths[path];
        if books.ca_state >= CaState::Cwr && books.una() >= books.high {
            let reduced = books.ca_state < CaState::Loss;
            books.ca_state = CaState::Open;
            if reduced {
                self.tell(path, &PathEvent::Recovered { to_ssthresh: true });
            }
        }
    }

    fn timeout(&mut self, path: usize) {
        let books = &mut self.paths[path];
        if books.una() == books.next {
            return;
        }
        let reduce_cwnd = books.ca_state < CaState::Cwr || books.una() >= books.high;
        books.lost += books.in_flight;
        books.in_flight = 0;
        books.undoable |= reduce_cwnd;
        books.ca_state = CaState::Loss;
        books.high = books.next;
        self.tell(path, &PathEvent::Congestion { cause: Cause::Timeout, reduce_cwnd, in_flight: 0 });
    }

    fn undo(&mut self, path: usize) {
        let books = &mut self.paths[path];
        if std::mem::take(&mut books.undoable) {
            let reduced = matches!(books.ca_state, CaState::Cwr | CaState::Recovery);
            books.ca_state = CaState::Open;
            self.tell(path, &PathEvent::SpuriousLoss);
            if reduced {
                self.tell(path, &PathEvent::Recovered { to_ssthresh: false });
            }
        }
    }

    fn probe_repair(&mut self, path: usize) {
        let books = &self.paths[path];
        if books.ca_state < CaState::Cwr {
            let in_flight = books.in_flight;
            self.tell(path, &PathEvent::Congestion { cause: Cause::TlpRecovery, reduce_cwnd: true, in_flight });
        }
    }

    fn tell(&mut self, path: usize, event: &PathEvent) {
        let before = self.decision(path);
        self.controller.on_event(PathId(path as u16), event, &mut context(self.now, &mut self.rng));
        let after = self.decision(path);
        self.check(path, event, before, after);
    }

    fn check(&self, path: usize, event: &PathEvent, before: Decision, after: Decision) {
        let (name, ca_state) = (self.entry.name, self.paths[path].ca_state);
        let says = || format!("{name} on {event:?} in {ca_state:?}: {before:?} became {after:?}");
        assert!(
            (1..=INFINITE_SSTHRESH).contains(&after.cwnd),
            "a window is at least one packet and finite: {}",
            says()
        );
        assert!((2..=INFINITE_SSTHRESH).contains(&after.ssthresh), "the threshold is at least two packets: {}", says());
        assert!(after.pacing_rate.is_none_or(|rate| rate.as_bits() > 0), "a rate of zero never sends: {}", says());
        if ca_state < CaState::Cwr && !matches!(event, PathEvent::Congestion { .. }) {
            let least = self.entry.properties.min_cwnd.min(before.cwnd);
            assert!(after.cwnd >= least, "below its minimum outside a reduction: {}", says());
        }
        if let PathEvent::Ack(sample) = event {
            let may_rise = sample.cwnd_limited
                || matches!(sample.ca_state, CaState::Cwr | CaState::Recovery)
                || self.entry.deviates(Deviation::RaisesUnfilledCwnd)
                || self.paired;
            assert!(may_rise || after.cwnd <= before.cwnd, "grew though the window is not filled: {}", says());
        }
        if let PathEvent::Congestion { cause, reduce_cwnd, .. } = event {
            let deepens = *cause == Cause::Loss
                && ca_state == CaState::Cwr
                && self.entry.deviates(Deviation::ReducesOnLossAfterMark);
            let paid = !reduce_cwnd || ca_state >= CaState::Cwr && !matches!(cause, Cause::Timeout) && !deepens;
            assert!(!paid || after.ssthresh == before.ssthresh, "cut twice in one window: {}", says());
        }
    }
}

fn context(now: Instant, rng: &mut RngStream) -> Context<'_> {
    Context { now, rng }
}
