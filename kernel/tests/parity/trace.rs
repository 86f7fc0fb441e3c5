//! What happens to a controller, as lines for a program.
//!
//! Before each event the program's window and threshold are set to the controller's, so that a difference of rounding
//! stays one and does not move what follows; so are those of its siblings. What the kernel does itself (proportional rate
//! reduction, restart after idling, cwnd validation) is taken from the controller and not compared.

use crate::Algorithm;
use conformance::controller::{Action, check_actions};
use control::{
    AckProgress, AckSample, AlgorithmEntry, CaState, Cause, Constructor, Context, Controller, Decision, Deviation,
    ParamValue, PathEvent, Properties, registry,
};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::{Arc, Mutex, PoisonError};
use units::{INFINITE_SSTHRESH, Instant, PathId, RngStream, Span};

/// Which decisions of the program are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Check {
    pub(crate) cwnd: bool,
    pub(crate) ssthresh: bool,
}

impl Check {
    pub(crate) const NOTHING: Self = Self { cwnd: false, ssthresh: false };
    const SSTHRESH: Self = Self { cwnd: false, ssthresh: true };
    const BOTH: Self = Self { cwnd: true, ssthresh: true };
}

/// A line, and what the controller decided.
#[derive(Debug)]
pub(crate) struct Step {
    pub(crate) path: usize,
    pub(crate) line: String,
    pub(crate) check: Check,
    /// Packets acknowledged.
    pub(crate) acked: u32,
    /// Of an acknowledgement, in the unit of [`Algorithm::bytes`].
    snd_nxt: Option<u64>,
    pub(crate) prior: Decision,
    pub(crate) decision: Decision,
}

/// Of a coupling over BBR: the window is the smaller of two.
const OVER_BBR: Properties = Properties {
    deviations: &[(Deviation::RaisesUnfilledCwnd, "as bbr"), (Deviation::KeepsCwndOnUndo, "as bbr")],
    ..Properties::DEFAULT
};

/// What a kernel counts as delivered when a subflow comes up: the SYN.
const SYN: u64 = 1;
/// Nanoseconds.
const MILLISECOND: u64 = 1_000_000;
/// The retransmission timeout.
const RTO_MS: u32 = 1000;

type Log = Arc<Mutex<Vec<Step>>>;

/// The algorithm's controller under these actions, which [`check_actions`] makes consistent events of.
pub(crate) fn record(algorithm: Algorithm, actions: &[(usize, Action)]) -> Result<Vec<Step>, String> {
    let Algorithm { name, bytes, choices, .. } = algorithm;
    let over_bbr = choices.contains(&("path", "bbr"));
    let parameters = choices.iter().map(|(name, choice)| ((*name).into(), ParamValue::Choice((*choice).into())));
    let parameters: BTreeMap<String, ParamValue> = parameters.collect();
    let entry = registry::find(name).ok_or_else(|| format!("no controller is called `{name}`"))?;
    let log = Log::default();
    let shared_log = Arc::clone(&log);
    let recorder = AlgorithmEntry {
        name,
        aliases: &[],
        title: entry.title,
        source: entry.source,
        parameters: &[],
        properties: if over_bbr { OVER_BBR } else { entry.properties },
        constructor: Constructor::CoupledDyn(Arc::new(move |_| {
            let inner = entry.controller(&parameters).expect("the choices are allowed");
            // Each run begins anew; the last one stays.
            lock(&shared_log).clear();
            Box::new(Recorder {
                inner,
                log: Arc::clone(&shared_log),
                states: [PathState { bytes, ..PathState::default() }; 3],
                events: 0,
            })
        })),
    };
    check_actions(&recorder, actions).map_err(|violation| violation.to_string())?;
    let mut steps = std::mem::take(&mut *lock(&log));
    set_snd_nxt(&mut steps);
    Ok(steps)
}

/// Gives each event the `snd_nxt` of the acknowledgement that caused it; one of a timer that of the next, where the
/// controllers begin the round trip that it begins.
fn set_snd_nxt(steps: &mut [Step]) {
    let mut latest = [None; 3];
    for step in steps.iter_mut().rev() {
        match (step.snd_nxt, latest[step.path]) {
            (Some(snd_nxt), _) => latest[step.path] = Some(snd_nxt),
            (None, _) if step.line.starts_with("up ") => latest[step.path] = None,
            (None, Some(snd_nxt)) => write!(step.line, " snd_nxt {snd_nxt}").expect("a string takes it"),
            (None, None) => {}
        }
    }
}

fn lock(log: &Log) -> std::sync::MutexGuard<'_, Vec<Step>> {
    log.lock().unwrap_or_else(PoisonError::into_inner)
}

#[derive(Clone, Copy, Debug, Default)]
struct PathState {
    ca_state: CaState,
    /// Whether the latest reduction can be undone.
    may_undo: bool,
    /// Whether there was a mark since the latest acknowledgement: the next one delivers marked packets.
    echoes_mark: bool,
    delivered_ce: u64,
    /// Whether the progress of the acknowledgement under way was written.
    has_progress: bool,
    /// Packets delivered, by the latest acknowledgement.
    delivered: u64,
    /// Whether sequence numbers count bytes.
    bytes: bool,
    /// Bytes of a packet.
    mss: u64,
    /// The latest cumulative acknowledgement, packets and bytes.
    snd_una: (u64, u64),
    /// When a kernel's retransmission timer expires, if packets are in flight.
    timer: Option<Instant>,
}

/// Passes events on, and writes them down.
#[derive(Debug)]
struct Recorder {
    inner: Box<dyn Controller>,
    log: Log,
    states: [PathState; 3],
    /// Number of the event, from which its random numbers follow.
    events: u64,
}

impl Controller for Recorder {
    fn on_event(&mut self, path: PathId, event: &PathEvent, cx: &mut Context<'_>) {
        let mut event = event.clone();
        if let PathEvent::AckProgress(progress) = &mut event {
            progress.marked = if self.states[path.index()].echoes_mark { progress.acked } else { 0 };
        }
        if let PathEvent::Ack(sample) = &mut event {
            // What a program can see: no send state of packets, and what srtt_us can hold, at least a microsecond.
            (sample.newest_delivered, sample.newest_lost) = (None, None);
            sample.srtt = if sample.srtt == Span::ZERO { Span::ZERO } else { Span(srtt_eighths(sample) * 125) };
            let echoes_mark = std::mem::take(&mut self.states[path.index()].echoes_mark);
            sample.marked = if echoes_mark { sample.acked } else { 0 };
            // The kernel compares in jiffies, here milliseconds.
            sample.last_sent = Instant(sample.last_sent.0.div_ceil(MILLISECOND) * MILLISECOND);
            sample.rto = Span(u64::from(RTO_MS) * MILLISECOND);
        }
        let none = Decision { cwnd: 10, ssthresh: INFINITE_SSTHRESH, pacing_rate: None };
        let is_new = matches!(event, PathEvent::PathUp(_));
        let prior = if is_new { none } else { self.inner.decision(path) };
        let index = path.index();
        self.events += 1;
        let rng = || RngStream::named(self.events, "parity");
        self.inner.on_event(path, &event, &mut Context { now: cx.now, rng: &mut rng() });
        let mut drawn = rng();
        let random = [(); 2].map(|()| drawn.bits() >> 32);
        let decision = self.inner.decision(path);
        self.expire_timers(index, cx.now);
        self.states[index].set_timer(&event, cx.now);
        let first = lock(&self.log).len();
        self.write(index, &event, prior, decision);
        let mut log = lock(&self.log);
        if let Some(step) = log.get_mut(first) {
            let time = format!(" time_ns {} mstamp_us {}", cx.now.0, cx.now.0 / 1000);
            let random = format!(" random0 {} random1 {}", random[0], random[1]);
            let before = if is_new { String::new() } else { cwnd_and_ssthresh(prior) };
            step.line = format!("{}{time}{random}{before}", step.line);
        }
        let line = format!("set {index}{}{}", cwnd_and_ssthresh(decision), usage(&event));
        log.push(Step { path: index, line, check: Check::NOTHING, acked: 0, snd_nxt: None, prior, decision });
    }

    fn decision(&self, path: PathId) -> Decision {
        self.inner.decision(path)
    }
}

fn cwnd_and_ssthresh(decision: Decision) -> String {
    format!(" snd_cwnd {} snd_ssthresh {}", decision.cwnd, decision.ssthresh)
}

/// What says after an event whether the path is in use.
fn usage(event: &PathEvent) -> String {
    match event {
        PathEvent::IdleRestart { .. } => " packets_out 1 data_segs_out 1".into(),
        PathEvent::Ack(sample) => {
            let lsndtime = (sample.last_sent.0 / MILLISECOND) as u32;
            let retransmits = if sample.acked > 0 { " retransmits 0" } else { "" };
            format!(" data_segs_out 1 lsndtime {lsndtime} rto {RTO_MS}{retransmits}")
        }
        PathEvent::Congestion { cause: Cause::Timeout, .. } => " retransmits 1".into(),
        _ => String::new(),
    }
}

/// An idle time and the timeout, which can be infinite.
fn in_jiffies(idle: Span, rto: Span) -> String {
    let [idle, rto] = [idle, rto].map(|span| (span.0 / MILLISECOND).min(1 << 31));
    format!(" idle {idle} rto {rto}")
}

fn srtt_eighths(sample: &AckSample) -> u64 {
    (sample.srtt.as_nanos() / 125).max(8)
}

impl Recorder {
    /// The siblings' timers, which are no event of an action: a path that does not answer is not in use.
    fn expire_timers(&mut self, own: usize, now: Instant) {
        for path in (0..self.states.len()).filter(|path| *path != own) {
            if self.states[path].timer.take_if(|timer| *timer <= now).is_none() {
                continue;
            }
            let decision = self.inner.decision(PathId(path as u16));
            let (line, prior) = (format!("set {path} retransmits 1"), decision);
            lock(&self.log).push(Step { path, line, check: Check::NOTHING, acked: 0, snd_nxt: None, prior, decision });
        }
    }

    fn write(&mut self, path: usize, event: &PathEvent, prior: Decision, decision: Decision) {
        let acked = if let PathEvent::Ack(sample) = event { sample.acked } else { 0 };
        let step = |line: String, check| Step { path, line, check, acked, snd_nxt: None, prior, decision };
        let mut steps = Vec::new();
        let state = &mut self.states[path];
        // With a pacing rate the algorithm has the window to itself: it changes at acknowledgements only, also in a
        // reduction.
        let has_cwnd = prior.pacing_rate.is_some();
        let after_episode = if has_cwnd { Check::SSTHRESH } else { Check::BOTH };
        match event {
            PathEvent::PathUp(info) => {
                *state = PathState { bytes: state.bytes, mss: u64::from(info.mss), ..PathState::default() };
                steps.push(step(format!("up {path} mss {} delivered {SYN}", info.mss), Check::BOTH));
            }
            PathEvent::PathDown => steps.push(step(format!("down {path}"), Check::NOTHING)),
            PathEvent::Ack(sample) => {
                state.ca_state = sample.ca_state;
                let reducing = matches!(sample.ca_state, CaState::Cwr | CaState::Recovery);
                let check = if reducing && !has_cwnd { Check::SSTHRESH } else { Check::BOTH };
                let (line, snd_nxt) = state.ack(path, sample);
                steps.push(Step { snd_nxt: Some(snd_nxt), ..step(line, check) });
            }
            PathEvent::AckProgress(progress) => steps.push(step(state.progress(path, progress), Check::BOTH)),
            PathEvent::Congestion { cause, reduce_cwnd, in_flight, .. } => {
                let reduces = state.on_congestion(*cause, *reduce_cwnd);
                let name = if reduces { "congestion" } else { "state" };
                let line = format!("{name} {path} new_state {} in_flight {in_flight}", state.ca_state as u8);
                state.echoes_mark |= *cause == Cause::EcnMark;
                let ends = *cause == Cause::TlpRecovery;
                steps.push(step(line, if ends { Check::NOTHING } else { Check::SSTHRESH }));
                if ends {
                    steps.push(step(format!("recovered {path} to_ssthresh 1"), after_episode));
                }
            }
            PathEvent::SpuriousLoss if state.may_undo => {
                steps.push(step(format!("undo {path} prior_ssthresh {}", decision.ssthresh), after_episode));
            }
            PathEvent::SpuriousLoss => steps.push(step(format!("set {path}"), Check::NOTHING)),
            PathEvent::Recovered { to_ssthresh } => {
                let line = format!("recovered {path} to_ssthresh {}", u8::from(*to_ssthresh));
                steps.push(step(line, after_episode));
            }
            PathEvent::WindowRestart { idle, rto } => {
                steps.push(step(format!("event {path} new_event 1{}", in_jiffies(*idle, *rto)), Check::NOTHING));
            }
            PathEvent::IdleRestart { idle, rto, app_limited } => {
                let values = format!(" limited_until {}{}", u8::from(*app_limited), in_jiffies(*idle, *rto));
                steps.push(step(format!("event {path} new_event 0{values}"), Check::NOTHING));
            }
            PathEvent::MssChanged { mss } => {
                state.mss = u64::from(*mss);
                steps.push(step(format!("set {path} mss {mss}"), Check::NOTHING));
            }
            // `ApplicationLimited` and `Penalise`: the kernel calls none of the programs.
            _ => {}
        }
        let ends = matches!(event, PathEvent::SpuriousLoss | PathEvent::Recovered { .. })
            || matches!(event, PathEvent::Congestion { cause: Cause::TlpRecovery, .. });
        if ends && state.ca_state >= CaState::Cwr {
            state.ca_state = CaState::Open;
            steps.push(step(format!("state {path} new_state 0"), Check::NOTHING));
        }
        lock(&self.log).extend(steps);
    }
}

impl PathState {
    /// Starts the timer where the kernel does: when the first packet is sent and at each acknowledgement of packets.
    fn set_timer(&mut self, event: &PathEvent, now: Instant) {
        match event {
            PathEvent::IdleRestart { rto, .. } => self.timer = Some(now + *rto),
            PathEvent::Ack(sample) if sample.acked > 0 => self.timer = (sample.in_flight > 0).then(|| now + sample.rto),
            _ => {}
        }
    }

    /// The line of an acknowledgement, and its snd_nxt.
    fn ack(&mut self, path: usize, sample: &AckSample) -> (String, u64) {
        let numbers = self.sequence_numbers([sample.snd_una, sample.snd_nxt]);
        if !std::mem::take(&mut self.has_progress) {
            self.delivered_ce += u64::from(sample.marked);
        }
        self.delivered = sample.delivered;
        (format!("{} delivered_ce {}", ack(path, sample, numbers), self.delivered_ce), numbers[1])
    }

    /// The line of an acknowledgement's progress.
    fn progress(&mut self, path: usize, progress: &AckProgress) -> String {
        let [snd_una, snd_nxt] = self.sequence_numbers([progress.snd_una, progress.snd_nxt]);
        self.delivered_ce += u64::from(progress.marked);
        self.has_progress = true;
        let rtt = progress.rtt.map_or(-1, |rtt| rtt.as_micros() as i64);
        let (delivered, delivered_ce) = (self.delivered + u64::from(progress.acked) + SYN, self.delivered_ce);
        format!(
            "progress {path} pkts_acked {} rtt_us {rtt} delivered {delivered} delivered_ce {delivered_ce} snd_una {snd_una} \
             snd_nxt {snd_nxt} slow_path {} packets_out {} nothing_outstanding {}",
            progress.pkts_acked,
            u8::from(!progress.is_predicted),
            progress.in_flight,
            u8::from(progress.pkts_acked == 0 && snd_una == snd_nxt)
        )
    }

    /// snd_una and snd_nxt, in the unit that the algorithm needs.
    fn sequence_numbers(&mut self, [snd_una, snd_nxt]: [u64; 2]) -> [u64; 2] {
        if !self.bytes {
            return [snd_una, snd_nxt];
        }
        let (packets, bytes) = self.snd_una;
        let una_bytes = bytes + (snd_una - packets) * self.mss;
        self.snd_una = (snd_una, una_bytes);
        [una_bytes, una_bytes + (snd_nxt - snd_una) * self.mss]
    }

    /// The state after a sign of congestion; returns whether it is the first of an episode.
    fn on_congestion(&mut self, cause: Cause, reduce_cwnd: bool) -> bool {
        let reducing = matches!(self.ca_state, CaState::Cwr | CaState::Recovery);
        match cause {
            Cause::Timeout => {
                self.may_undo |= reduce_cwnd;
                self.ca_state = CaState::Loss;
                reduce_cwnd
            }
            Cause::Loss => {
                self.may_undo = !reducing;
                self.ca_state = CaState::Recovery;
                !reducing
            }
            Cause::EcnMark | Cause::LocalDrop | Cause::TlpRecovery | Cause::Requested => {
                self.may_undo = false;
                let begins = self.ca_state < CaState::Cwr;
                self.ca_state = self.ca_state.max(CaState::Cwr);
                begins
            }
        }
    }
}

fn ack(path: usize, sample: &AckSample, [snd_una, snd_nxt]: [u64; 2]) -> String {
    let mut line = format!("ack {path}");
    let mut set = |name: &str, value: i64| write!(line, " {name} {value}").expect("a string takes it");
    if sample.srtt > Span::ZERO {
        set("srtt_eighths", srtt_eighths(sample) as i64);
    }
    set("acked", i64::from(sample.acked));
    set("pkts_acked", i64::from(sample.pkts_acked));
    set("rtt_us", sample.rtt.map_or(-1, |rtt| rtt.as_micros() as i64));
    set("may_raise", i64::from(sample.may_raise_cwnd));
    set("cwnd_limited", i64::from(sample.cwnd_limited));
    set("prior_state", sample.prior_ca_state as i64);
    set("new_state", sample.ca_state as i64);
    set("prior_in_flight", i64::from(sample.prior_in_flight));
    set("packets_out", i64::from(sample.in_flight));
    set("sent", i64::from(sample.sent));
    set("slow_path", i64::from(!sample.is_predicted));
    set("nothing_outstanding", i64::from(sample.pkts_acked == 0 && snd_una == snd_nxt));
    set("losses", i64::from(sample.lost));
    set("delivered", (sample.delivered + SYN) as i64);
    set("snd_una", snd_una as i64);
    set("snd_nxt", snd_nxt as i64);
    let rate = sample.rate_sample;
    set("rate_delivered", rate.map_or(-1, |rate| i64::from(rate.delivered)));
    set("rate_interval_us", rate.map_or(-1, |rate| rate.interval.as_micros() as i64));
    set("prior_delivered", rate.map_or(0, |rate| (rate.prior_delivered + SYN) as i64));
    set("app_limited", rate.map_or(0, |rate| i64::from(rate.app_limited)));
    set("ack_delayed", rate.map_or(0, |rate| i64::from(rate.ack_delayed)));
    line
}
