//! Carries out a plan.

use crate::client::{Echo, Echoed, Error, Flow, Session};
use crate::flow::{Bounds, INTERVAL};
use crate::judge;
use crate::plan::{IDLE, LOW_RATE, Plan, PlannedStage};
use crate::source::Source;
use crate::stream::stream;
use measured::{
    BulkCall, Direction, Ends, IdleRtt, Measured, Options, Parallel, RttSample, STREAMS, SharedFlow, Stage, StageKind,
    Summary, TcpFlow, Together, UdpStream,
};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// A stage that has ended.
#[derive(Clone, Debug)]
pub struct News<'a> {
    /// Its number, from 1.
    pub number: usize,
    /// The document with this stage and those before it, without conclusions: [`interrupted`] draws them.
    pub measured: &'a Measured,
}

impl News<'_> {
    /// The stage.
    #[must_use]
    pub fn stage(&self) -> &Stage {
        &self.measured.stages[self.number - 1]
    }
}

/// What a stage gave: its results are in the document already.
struct Outcome {
    bytes: u64,
}

/// Measures by a plan, and tells of each stage. A stage that fails is in the document, with its reason.
pub fn run(session: &Session, plan: &Plan, program: &str, tell: &mut dyn FnMut(&News<'_>)) -> Measured {
    let mut measured = Measured {
        when: Some(rfc3339(SystemTime::now())),
        program: Some(program.to_owned()),
        ends: Some(Ends { here: crate::client::host_name(), there: session.name().to_owned() }),
        options: Some(Options {
            seed: Some(plan.choices.seed),
            repeats: Some(plan.choices.repeats),
            budget_bytes: Some(plan.choices.budget_bytes),
            planned_bytes: Some(plan.bytes()),
        }),
        ..Measured::default()
    };
    for path in &plan.choices.paths {
        let found = measured.path_mut(&path.name);
        found.source = (path.source != Source::Any).then(|| path.source.to_string());
    }
    let start = Instant::now();
    for (number, planned) in (1..).zip(&plan.stages) {
        let (start_s, began) = (start.elapsed().as_secs_f64(), Instant::now());
        let outcome = run_stage(session, plan, planned, &mut measured);
        measured.stages.push(record(plan, planned, outcome, start_s, began.elapsed()));
        tell(&News { number, measured: &measured });
    }
    conclude(&mut measured);
    measured
}

/// The document of a measurement that ended after some of its stages, and says so.
#[must_use]
pub fn interrupted(mut measured: Measured, planned: usize) -> Measured {
    conclude(&mut measured);
    let done = measured.stages.len();
    measured.not_measured.push(format!("{} of {planned} stages: the measurement was interrupted", planned - done));
    measured
}

fn record(plan: &Plan, planned: &PlannedStage, outcome: Result<Outcome, Error>, start_s: f64, time: Duration) -> Stage {
    let has_flow = !planned.congestion.is_empty();
    Stage {
        kind: planned.kind,
        paths: planned.paths.iter().map(|path| plan.choices.paths[*path].name.clone()).collect(),
        direction: has_flow.then_some(planned.direction),
        congestion: has_flow.then(|| planned.congestion.clone()),
        repeat: planned.repeat,
        start_s,
        seconds: time.as_secs_f64(),
        bytes: outcome.as_ref().ok().map(|outcome| outcome.bytes),
        failure: outcome.err().map(|error| error.to_string()),
    }
}

fn run_stage(
    session: &Session,
    plan: &Plan,
    planned: &PlannedStage,
    measured: &mut Measured,
) -> Result<Outcome, Error> {
    let path = &plan.choices.paths[planned.paths[0]];
    let (direction, repeat) = (planned.direction, planned.repeat);
    let found = measured.path_mut(&path.name);
    match planned.kind {
        StageKind::IdleRtt => {
            let echoed = session.echo(&path.source, IDLE, &AtomicBool::new(false))?;
            found.idle_rtt.push(idle(&echoed, repeat));
            Ok(Outcome { bytes: echoed.bytes(IDLE) })
        }
        StageKind::Udp => {
            let echoed = session.echo(&path.source, LOW_RATE, &AtomicBool::new(false))?;
            found.udp.extend(streams(&echoed, repeat));
            Ok(Outcome { bytes: echoed.bytes(LOW_RATE) })
        }
        StageKind::Tcp => {
            let flow = session.flow(&path.source, direction, &planned.congestion, plan.bounds())?;
            let bytes = flow.receiver.bytes;
            found.tcp.push(tcp(flow, direction, &planned.congestion, repeat));
            Ok(Outcome { bytes })
        }
        StageKind::Parallel => {
            let flow = parallel(session, plan, planned)?;
            let bytes = flow.receiver.bytes;
            let flow = tcp(flow, direction, &planned.congestion, repeat);
            found.parallel.push(Parallel { streams: STREAMS, flow });
            Ok(Outcome { bytes })
        }
        StageKind::Call => {
            let (echoed, flow) = call(session, plan, planned)?;
            let bytes = echoed.bytes(plan.call()) + flow.receiver.bytes;
            found.calls.push(bulk_call(&echoed, &flow, plan.call(), planned));
            Ok(Outcome { bytes })
        }
        StageKind::Together => {
            let flows = together(session, plan, planned)?;
            let bytes = flows.iter().map(|(_, flow)| flow.receiver.bytes).sum();
            measured.together.push(shared(&flows, planned));
            Ok(Outcome { bytes })
        }
    }
}

impl Plan {
    fn bounds(&self) -> Bounds {
        Bounds { time: self.choices.flow_time, bytes: self.flow_bytes }
    }
}

impl Echoed {
    /// Payload in both directions.
    fn bytes(&self, echo: Echo) -> u64 {
        (u64::from(self.sent) + self.down.len() as u64) * echo.payload_bytes as u64
    }

    fn samples(&self) -> Vec<RttSample> {
        let mut rtts = self.rtts.clone();
        rtts.sort_unstable();
        rtts.iter().map(|(at, rtt)| RttSample { at_s: at.as_secs_f64(), rtt_ms: rtt.as_secs_f64() * 1e3 }).collect()
    }

    fn lost(&self) -> u64 {
        u64::from(self.sent).saturating_sub(self.rtts.len() as u64)
    }
}

fn summary(samples: &[RttSample]) -> Option<Summary> {
    Summary::of(samples.iter().map(|sample| sample.rtt_ms))
}

fn idle(echoed: &Echoed, repeat: u32) -> IdleRtt {
    let samples = echoed.samples();
    IdleRtt {
        repeat,
        interval_s: Some(IDLE.interval.as_secs_f64()),
        payload_bytes: Some(IDLE.payload_bytes as u64),
        sent: Some(echoed.sent.into()),
        lost: Some(echoed.lost()),
        rtt_ms: summary(&samples),
        samples,
    }
}

/// What the datagrams were like in each direction. What the server returned is what had come to it.
fn streams(echoed: &Echoed, repeat: u32) -> [UdpStream; 2] {
    let up = UdpStream { duplicates: Some(echoed.duplicates_up), ..stream(Direction::Up, echoed.sent, &echoed.up) };
    let down = stream(Direction::Down, echoed.up.len() as u32, &echoed.down);
    [up, down].map(|stream| UdpStream {
        repeat,
        seconds: Some(LOW_RATE.time.as_secs_f64()),
        rate_mbps: Some(LOW_RATE.payload_bytes as f64 * 8.0 / LOW_RATE.interval.as_secs_f64() / 1e6),
        payload_bytes: Some(LOW_RATE.payload_bytes as u64),
        ..stream
    })
}

fn tcp(flow: Flow, direction: Direction, congestion: &str, repeat: u32) -> TcpFlow {
    let Flow { sender, receiver } = flow;
    let sender = sender.unwrap_or_default();
    let interval_s = INTERVAL.as_secs_f64();
    let samples: Vec<RttSample> =
        sender.rtt.iter().map(|(at_s, rtt_ms)| RttSample { at_s: *at_s, rtt_ms: *rtt_ms }).collect();
    TcpFlow {
        repeat,
        direction,
        congestion: Some(congestion.to_owned()),
        seconds: Some(receiver.seconds),
        bytes: Some(receiver.bytes),
        goodput_mbps: goodput(receiver.bytes, receiver.seconds),
        interval_s: Some(interval_s),
        goodput_intervals_mbps: receiver.intervals.iter().filter_map(|bytes| goodput(*bytes, interval_s)).collect(),
        rtt_ms: summary(&samples),
        rtt_samples: samples,
        sent_segments: sender.sent_segments,
        retransmitted_segments: sender.retransmitted_segments,
        mss_bytes: sender.mss_bytes,
    }
}

/// Mbit/s; none of no time.
fn goodput(bytes: u64, seconds: f64) -> Option<f64> {
    (seconds > 0.0).then(|| bytes as f64 * 8.0 / seconds / 1e6)
}

/// A flow, and datagrams for as long as it lasts.
fn call(session: &Session, plan: &Plan, planned: &PlannedStage) -> Result<(Echoed, Flow), Error> {
    let source = &plan.choices.paths[planned.paths[0]].source;
    let is_done = AtomicBool::new(false);
    thread::scope(|scope| {
        let echo = scope.spawn(|| session.echo(source, plan.call(), &is_done));
        let flow = session.flow(source, planned.direction, &planned.congestion, plan.bounds());
        is_done.store(true, Ordering::Relaxed);
        let echoed = echo.join().unwrap_or_else(|_| Err(Error("the datagrams broke off".to_owned())));
        // A flow that is refused ends the datagrams before the first: its reason is the one to tell.
        let flow = flow?;
        Ok((echoed?, flow))
    })
}

fn bulk_call(echoed: &Echoed, flow: &Flow, echo: Echo, planned: &PlannedStage) -> BulkCall {
    let samples = echoed.samples();
    BulkCall {
        repeat: planned.repeat,
        direction: planned.direction,
        congestion: Some(planned.congestion.clone()),
        interval_s: Some(echo.interval.as_secs_f64()),
        payload_bytes: Some(echo.payload_bytes as u64),
        sent: Some(echoed.sent.into()),
        lost: Some(echoed.lost()),
        rtt_ms: summary(&samples),
        rtt_samples: samples,
        goodput_mbps: goodput(flow.receiver.bytes, flow.receiver.seconds),
    }
}

/// Several flows on one path at the same time, as one.
fn parallel(session: &Session, plan: &Plan, planned: &PlannedStage) -> Result<Flow, Error> {
    let source = &plan.choices.paths[planned.paths[0]].source;
    let bounds = Bounds { bytes: plan.bytes_of_parallel(), ..plan.bounds() };
    thread::scope(|scope| {
        let start = |_| scope.spawn(|| session.flow(source, planned.direction, &planned.congestion, bounds));
        let running: Vec<_> = (0..STREAMS).map(start).collect();
        let end = |flow: thread::ScopedJoinHandle<'_, _>| {
            flow.join().unwrap_or_else(|_| Err(Error("the flow broke off".to_owned())))
        };
        let flows: Vec<Flow> = running.into_iter().map(end).collect::<Result<_, Error>>()?;
        Ok(flows.into_iter().reduce(Flow::combined_with).unwrap_or_default())
    })
}

/// A flow on each path at the same time, each with the name of its path.
fn together(session: &Session, plan: &Plan, planned: &PlannedStage) -> Result<Vec<(String, Flow)>, Error> {
    thread::scope(|scope| {
        let start = |path: &usize| {
            let path = &plan.choices.paths[*path];
            let run = move || session.flow(&path.source, planned.direction, &planned.congestion, plan.bounds());
            (path.name.clone(), scope.spawn(run))
        };
        let running: Vec<_> = planned.paths.iter().map(start).collect();
        let end = |(name, flow): (String, thread::ScopedJoinHandle<'_, Result<Flow, Error>>)| {
            let flow = flow.join().unwrap_or_else(|_| Err(Error("the flow broke off".to_owned())));
            flow.map(|flow| (name, flow))
        };
        running.into_iter().map(end).collect()
    })
}

fn shared(flows: &[(String, Flow)], planned: &PlannedStage) -> Together {
    let seconds = flows.iter().map(|(_, flow)| flow.receiver.seconds).fold(f64::INFINITY, f64::min);
    let flow = |(path, flow): &(String, Flow)| SharedFlow {
        path: path.clone(),
        goodput_mbps: goodput(flow.receiver.bytes, flow.receiver.seconds),
        alone_mbps: None,
    };
    Together {
        repeat: planned.repeat,
        direction: planned.direction,
        congestion: Some(planned.congestion.clone()),
        seconds: Some(seconds),
        flows: flows.iter().map(flow).collect(),
        shared_bottleneck: None,
    }
}

/// Draws the conclusions from all stages.
fn conclude(measured: &mut Measured) {
    for path in &mut measured.paths {
        path.policers = Direction::ALL.map(|direction| judge::policer(path, direction)).to_vec();
    }
    let Measured { paths, together, stages, not_measured, .. } = measured;
    together.iter_mut().for_each(|together| judge::compare_with_alone(together, paths));
    for stage in stages {
        let direction = stage.direction.map_or("", Direction::name);
        let congestion = stage.congestion.as_deref().unwrap_or_default();
        let words = [&stage.paths.join(" and "), stage.kind.name(), congestion, direction];
        let words: Vec<&str> = words.into_iter().filter(|word| !word.is_empty()).collect();
        let line = stage.failure.as_ref().map(|failure| format!("{}: {failure}", words.join(", ")));
        not_measured.extend(line.filter(|line| !not_measured.contains(line)));
    }
}

/// A time in UTC, as in RFC 3339, by the calendar's period of 400 years of 146097 days.
fn rfc3339(time: SystemTime) -> String {
    let seconds = time.duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs());
    let (days, of_day) = (seconds / 86_400 + 719_468, seconds % 86_400);
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    // Months from March, so that the leap day is the year's last.
    let month_from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    format!("{year}-{month:02}-{day:02}T{:02}:{:02}:{:02}Z", of_day / 3600, of_day / 60 % 60, of_day % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_written_as_date_reads_it() {
        // `date -u -d @SECONDS +%FT%TZ`
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_399, "2000-02-28T23:59:59Z"),
            (951_827_696, "2000-02-29T12:34:56Z"),
            (1_735_689_599, "2024-12-31T23:59:59Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
        ] {
            assert_eq!(rfc3339(UNIX_EPOCH + Duration::from_secs(seconds)), text);
        }
    }
}
