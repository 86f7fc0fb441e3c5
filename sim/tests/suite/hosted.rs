//! Hosted stacks: bytes of endpoints that the simulator does not know.
//!
//! Either end of the stack of these tests sends one datagram after another over each path in turn, and waits for the answer to
//! each, whatever the stream.

use crate::common::{OVERHEAD, add_path, datagrams, one_link, pipe, run, run_sampled};
use link::{EcnField, LossModel, PipeConfig, QueueConfig, QueueDiscipline, QueueLimit};
use params::{ParamKind, Parameter};
use scenario::model::{Distribution, Experiment, FlowKind, Hosted, HostedRequests, Requests, Route, Subflow};
use stack::{Constructor, Datagram, Endpoint, PathStatus, Read, Setup, StackEntry, Transmit};
use std::collections::VecDeque;
use std::sync::Arc;
use units::{Instant, Rate, Span};

/// IPv4 and UDP headers.
const HEADERS: u32 = 28;
/// A datagram begins with its number, its stream in the fifth byte and the stream's end in the first. Every other byte follows
/// from number and position. An answer is nothing but that number.
const NUMBER: usize = 8;
const END: u64 = 1 << 63;
const STREAM: u64 = 1 << 32;

#[derive(Debug)]
struct StopAndWait {
    paths: u64,
    size: usize,
    timeout: Span,
    is_open: bool,
    /// The numbers of the next datagrams: to send, and to receive.
    next: [u64; 2],
    is_waiting: bool,
    /// The answers that are to be sent.
    answers: VecDeque<(u16, u64)>,
    deadline: Instant,
    /// The bytes of the datagram to send, its stream, and whether it is the stream's last.
    offered: Option<(u64, u64, bool)>,
    unread: VecDeque<Read>,
    latest: Instant,
    rtt: Option<Span>,
    marks: u64,
    error: Option<String>,
}

impl StopAndWait {
    fn bytes(number: u64, size: usize, buffer: &mut Vec<u8>) {
        buffer.extend(number.to_be_bytes());
        buffer.extend((NUMBER..size).map(|position| number as u8 ^ position as u8));
    }

    fn receive_answer(&mut self, now: Instant, number: u64) {
        if number % STREAM == self.next[0] {
            (self.is_waiting, self.deadline, self.rtt) = (false, Instant::NEVER, Some(now.since(self.latest)));
            (self.next[0], self.offered) = (self.next[0] + 1, None);
        }
    }
}

impl Endpoint for StopAndWait {
    fn deadline(&mut self) -> Instant {
        self.deadline
    }

    fn on_timeout(&mut self, now: Instant) {
        assert_eq!(now, self.deadline, "a timeout is on time");
        (self.is_waiting, self.deadline) = (false, Instant::NEVER);
    }

    fn receive(&mut self, now: Instant, datagram: Datagram<'_>) {
        self.marks += u64::from(datagram.ecn == EcnField::Ce);
        let number = u64::from_be_bytes(datagram.bytes[..NUMBER].try_into().unwrap());
        if datagram.bytes.len() == NUMBER {
            return self.receive_answer(now, number);
        }
        let mut expected = Vec::new();
        Self::bytes(number, datagram.bytes.len(), &mut expected);
        assert_eq!(datagram.bytes, expected, "the bytes are those that were sent");
        if number % STREAM == self.next[1] {
            self.next[1] += 1;
            let (stream, bytes) = (number % END / STREAM, datagram.bytes.len() as u64);
            self.unread.push_back(Read { stream, bytes, is_finished: number >= END });
        }
        self.answers.push_back((datagram.path, number));
        if self.marks == 3 {
            self.error = Some("three marks".to_owned());
        }
    }

    fn poll_transmit(&mut self, now: Instant, buffer: &mut Vec<u8>) -> Option<Transmit> {
        if let Some((path, number)) = self.answers.pop_front() {
            buffer.extend(number.to_be_bytes());
            return Some(Transmit { path, ecn: EcnField::NotEct });
        }
        let (bytes, stream, is_last) = self.offered.filter(|_| !self.is_waiting)?;
        let number = self.next[0] + stream * STREAM + if is_last { END } else { 0 };
        Self::bytes(number, bytes as usize, buffer);
        (self.is_waiting, self.deadline, self.latest) = (true, now + self.timeout, now);
        Some(Transmit { path: (self.next[0] % self.paths) as u16, ecn: EcnField::Ect0 })
    }

    fn connect(&mut self, _now: Instant) {
        assert!(!self.is_open, "once");
        self.is_open = true;
    }

    fn write(&mut self, _now: Instant, stream: u64, bytes: u64) -> u64 {
        if self.offered.is_some() {
            return 0;
        }
        let bytes = bytes.min(self.size as u64);
        self.offered = Some((bytes, stream, false));
        bytes
    }

    fn finish(&mut self, _now: Instant, stream: u64) {
        if let Some((bytes, offered, _)) = self.offered
            && offered == stream
        {
            self.offered = Some((bytes, stream, true));
        }
    }

    fn read(&mut self, _now: Instant) -> Option<Read> {
        self.unread.pop_front()
    }

    fn close(&mut self, _now: Instant) {}

    fn path(&self, _path: u16) -> PathStatus {
        PathStatus { cwnd: Some(self.size as u64), srtt: self.rtt, ..PathStatus::default() }
    }

    fn error(&self) -> Option<String> {
        self.error.clone()
    }
}

fn endpoints(setup: &Setup<'_>) -> Result<[Box<dyn Endpoint>; 2], String> {
    if let Some(congestion) = setup.congestion {
        return Err(format!("it has no `{}`", congestion.name));
    }
    let endpoint = || -> Box<dyn Endpoint> {
        Box::new(StopAndWait {
            paths: u64::from(setup.paths),
            size: setup.max_datagram as usize,
            timeout: Span::from_secs_f64(setup.params.number("timeout_s")),
            is_open: false,
            next: [0; 2],
            is_waiting: false,
            answers: VecDeque::new(),
            deadline: Instant::NEVER,
            offered: None,
            unread: VecDeque::new(),
            latest: Instant::ZERO,
            rtt: None,
            marks: 0,
            error: None,
        })
    };
    Ok([endpoint(), endpoint()])
}

const TIMEOUT: Parameter = Parameter {
    name: "timeout_s",
    description: "Time after which a datagram is sent again",
    kind: ParamKind::Number { default: 1.0, min: 0.001, max: 10.0 },
};

/// One flow of the stack over these paths.
fn hosted(pipe: PipeConfig, seconds: u64, paths: &[usize]) -> Experiment {
    let entry = StackEntry {
        name: "stop-and-wait",
        title: "one datagram per round trip",
        code_version: "1",
        max_paths: 2,
        parameters: &[TIMEOUT],
        constructor: Constructor(Arc::new(endpoints)),
    };
    stack::register(entry).unwrap();
    let mut experiment = one_link("", pipe, seconds);
    let subflow = |path: &usize| Subflow { path: *path, backup: false, join: Span::ZERO, leave: None };
    experiment.flows[0].route = if let [path] = paths { Route::Path(*path) } else { Route::Subflows };
    experiment.flows[0].kind = FlowKind::Hosted(Box::new(Hosted {
        stack: "stop-and-wait".into(),
        congestion: None,
        size: None,
        rate: None,
        requests: None,
        subflows: paths.iter().map(subflow).collect(),
        ip_header: 20,
    }));
    experiment
}

fn model(experiment: &mut Experiment) -> &mut Hosted {
    match &mut experiment.flows[0].kind {
        FlowKind::Hosted(hosted) => hosted,
        _ => unreachable!("the only flow"),
    }
}

const RATE: Rate = Rate::from_mbit(10);
const DELAY: Span = Span::from_millis(20);

/// The time from a datagram of full size to the next one.
fn round_trip() -> Span {
    let answer = HEADERS + NUMBER as u32;
    RATE.time_for(u64::from(1500 + OVERHEAD)) + RATE.time_for(u64::from(answer + OVERHEAD)) + DELAY + DELAY
}

#[test]
fn one_datagram_per_round_trip_has_the_goodput_of_its_closed_form() {
    let experiment = hosted(pipe(RATE, DELAY, 100), 10, &[0]);
    let run = run_sampled(experiment, Span::from_secs(1));
    let (flow, rounds) = (&run.flows[0], Span::from_secs(10).0 / round_trip().0);
    assert_eq!(flow.sent_packets, rounds + 1);
    // The last datagram has arrived if the remaining time is enough for one way.
    assert!((rounds..=rounds + 1).contains(&(flow.delivered_bytes / 1472)), "{}", flow.delivered_bytes);
    assert!((flow.rtt_ms.mean - round_trip().as_millis_f64()).abs() < 1e-3, "{:?}", flow.rtt_ms);
    assert_eq!((flow.protocol, flow.congestion_control.as_str()), (record::Protocol::Hosted, "own:default"));
    assert_eq!(flow.stack.as_ref().map(|stack| stack.stack.as_str()), Some("stop-and-wait"));
    let cwnd = crate::common::column(&run, "flow flow", "cwnd_packets");
    assert!(cwnd.iter().all(|cwnd| *cwnd == 1.0), "{cwnd:?}");
}

#[test]
fn a_file_ends_with_its_last_byte_and_a_rate_is_kept() {
    let mut experiment = hosted(pipe(RATE, DELAY, 100), 10, &[0]);
    model(&mut experiment).size = Some(10 * 1472 + 100);
    let run_of_file = run(&experiment);
    let flow = &run_of_file.flows[0];
    let last = RATE.time_for(u64::from(100 + HEADERS + OVERHEAD)) + DELAY;
    assert_eq!((flow.delivered_bytes, flow.sent_packets), (10 * 1472 + 100, 11));
    let expected = (Span(round_trip().0 * 10) + last).as_secs_f64();
    assert!((flow.completion_s.unwrap() - expected).abs() < 1e-6, "{:?} {expected}", flow.completion_s);

    // A tenth of what the path carries: a write leaves at once.
    *model(&mut experiment) =
        Hosted { size: None, rate: Some(Rate::from_bits(20_000)), ..model(&mut experiment).clone() };
    let run_of_rate = run(&experiment);
    let writes = 10 * 20_000 / 8 / 1472;
    assert_eq!(run_of_rate.flows[0].sent_packets, writes);
    experiment.flows[0].stop = Some(Instant::ZERO + Span::from_secs(5));
    assert_eq!(run(&experiment).flows[0].sent_packets, writes / 2);
}

/// A request of 400 bytes and its answer of one datagram, each with the acknowledgement of the other end in front of what it
/// sends: the way there, the way back, and a second of thinking.
#[test]
fn a_request_takes_the_time_of_its_closed_form() {
    let mut experiment = hosted(pipe(RATE, DELAY, 100), 10, &[0]);
    let requests =
        Requests { size: Distribution::Fixed(1472.0), think: Distribution::Fixed(1e9), new_connections: false };
    model(&mut experiment).requests = Some(HostedRequests { requests, streams: 1 });
    let run_of_one = run(&experiment);
    let time = |payload: u32| RATE.time_for(u64::from(payload + HEADERS + OVERHEAD));
    let response = time(Requests::REQUEST_BYTES) + DELAY + time(NUMBER as u32) + time(1472) + DELAY;
    let requests = run_of_one.flows[0].requests.as_ref().unwrap();
    // The tenth request begins before the end, and so does its answer.
    assert_eq!((requests.requests, run_of_one.flows[0].delivered_bytes), (10, 10 * 1472));
    assert!((requests.response_time_ms.mean - response.as_millis_f64()).abs() < 1e-3, "{requests:?}");

    // Of three at once, each end sends one after the other, after a round trip.
    model(&mut experiment).requests.as_mut().unwrap().streams = 3;
    let run_of_three = run(&experiment);
    let requests = run_of_three.flows[0].requests.as_ref().unwrap();
    assert_eq!((requests.requests, run_of_three.flows[0].delivered_bytes), (30, 30 * 1472));
    assert!(requests.response_time_ms.max > requests.response_time_ms.p50 + 30.0, "{requests:?}");
    assert_eq!(run_of_three.flows[0].stack.as_ref().unwrap().stack_error, "");

    // After the stop, no request begins.
    experiment.flows[0].stop = Some(Instant::ZERO + Span::from_millis(2500));
    assert_eq!(run(&experiment).flows[0].requests.as_ref().unwrap().requests, 9);
}

#[test]
fn what_links_do_to_datagrams_is_done_to_their_bytes() {
    let mut config = pipe(RATE, DELAY, 100);
    config.loss = LossModel::Random(0.1);
    (config.duplicate, config.corrupt) = (0.1, 0.05);
    let mut experiment = hosted(config, 60, &[0]);
    model(&mut experiment).stack.parameters.insert("timeout_s".into(), params::ParamValue::Number(0.1));
    let first = run(&experiment);
    let (flow, path) = (&first.flows[0], &first.paths[0]);
    assert!(path.lost_packets > 0 && path.duplicated_packets > Some(0) && path.corrupted_packets > Some(0), "{path:?}");
    assert_eq!(flow.dropped_packets, path.lost_packets + path.corrupted_packets.unwrap());
    let arrived = path.delivered_packets - path.corrupted_packets.unwrap();
    assert!((flow.throughput_mbps - Rate::of(arrived * 1500, Span::from_secs(60)).as_mbps()).abs() < 1e-6);
    assert_eq!(first.digest, run(&experiment).digest);
}

#[test]
fn paths_take_turns_and_each_has_its_own_row() {
    let mut experiment = hosted(pipe(RATE, DELAY, 100), 10, &[0, 1]);
    add_path(&mut experiment, ["second link", "second"], pipe(RATE, Span::from_millis(50), 100), &[]);
    experiment.flows[0].reverse = true;
    let run = run_sampled(experiment, Span::from_secs(1));
    let both = Span(2 * round_trip().0 + 2 * (Span::from_millis(50).0 - DELAY.0));
    let sent: Vec<u64> = run.subflows.iter().map(|subflow| subflow.sent_packets).collect();
    let turns = Span::from_secs(10).0 / both.0;
    assert!(sent.iter().all(|sent| (turns..=turns + 1).contains(sent)), "{sent:?} {turns}");
    let names: Vec<&str> = run.subflows.iter().map(|subflow| subflow.path.as_str()).collect();
    assert_eq!(names, ["path", "second"]);
    let delay = run.subflows[1].rtt_ms.mean - run.subflows[0].rtt_ms.mean;
    assert!((delay - 60.0).abs() < 1e-3, "{delay}");
}

#[test]
fn a_stack_sees_marks_and_the_record_has_its_error() {
    let mut config = pipe(RATE, DELAY, 100);
    let discipline = QueueDiscipline::CoDel(link::CoDelConfig::default());
    config.queue = QueueConfig { limit: QueueLimit::Packets(100), discipline, ecn: true };
    let mut experiment = hosted(config, 10, &[0]);
    experiment.flows.push(datagrams("crowd", Rate::from_mbit(12), 1500));
    let run = run(&experiment);
    assert_eq!(run.flows[0].stack.as_ref().unwrap().stack_error, "three marks");
}

#[test]
fn what_a_stack_cannot_do_is_refused_with_its_words() {
    let refused = |change: fn(&mut Hosted), reason: &str| {
        let mut experiment = hosted(pipe(RATE, DELAY, 100), 10, &[0]);
        change(model(&mut experiment));
        let error = ropewalk_sim::run(&experiment, 1).unwrap_err().to_string();
        assert_eq!(error, format!("flow flow: {reason}"));
    };
    refused(|model| model.congestion = Some("cubic".into()), "it has no `cubic`");
    refused(|model| model.stack = "quack".into(), "this program has no stack called `quack`");
    refused(|model| model.subflows = vec![model.subflows[0]; 3], "stop-and-wait has connections over at most 2 paths");
    refused(
        |model| drop(model.stack.parameters.insert("window".into(), params::ParamValue::Number(1.0))),
        "no parameter `window`; there is: timeout_s",
    );
}
