//! Runs a script, event by event, until its end or the first difference.

use crate::call::Call;
use crate::error::ScriptError;
use crate::expect::Expected;
use crate::expression::{holds, statements, values};
use crate::host::{Host, seconds};
use crate::info::names;
use crate::packet::Packet;
use crate::parse::{Action, Event, Time, parse};
use crate::setup::{Setup, controller, setup};
use control::LinuxRelease;
use transport::tcp::sender::Input;
use transport::tcp::{Ack, SackBlocks};
use units::Span;

/// Options of a script's run.
#[derive(Clone, Debug)]
pub struct Options {
    /// Congestion control, instead of the script's own.
    pub congestion: Option<String>,
    /// The host's timer tick (Linux: 1/HZ).
    pub tick: Span,
    /// The Linux series whose rules apply.
    pub release: LinuxRelease,
    /// Whether the outcome has a timeline.
    pub timeline: bool,
}

/// The outcome of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Packets that left as expected.
    pub packets: usize,
    /// Assertions that hold.
    pub assertions: usize,
    /// The first difference; none if the script passes.
    pub difference: Option<Difference>,
    /// The line at which the end of the connection begins, which is not run.
    pub end: Option<usize>,
    /// Settings of the script that have no effect here, with their lines.
    pub ignored: Vec<(usize, String)>,
    /// The timeline: times in seconds, packets, and the state after each acknowledgement.
    pub timeline: Vec<String>,
}

/// A difference between a script and the machines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// Line of the script.
    pub line: usize,
    /// The expectation.
    pub expected: String,
    /// The observation.
    pub found: String,
    /// The sender's state at that time.
    pub state: String,
}

/// Congestion control if neither script nor caller names one: Linux's default.
const DEFAULT_CONGESTION: &str = "cubic";
/// Maximum data in an arriving packet, as merged by receive offload, bytes.
const MAX_PACKET: u64 = 65_535;
/// The longest wait for a packet at any time, microseconds.
const ANY_TIME: u64 = 3_600_000_000;

/// Runs the script.
///
/// # Errors
///
/// A statement is malformed, or the machines do not support it.
pub fn run(script: &str, options: &Options) -> Result<Outcome, ScriptError> {
    let script = parse(script)?;
    let setup = setup(&script, options)?;
    let (line, name) = match (&options.congestion, &setup.congestion) {
        (Some(name), _) => (1, name.as_str()),
        (None, Some((line, name))) => (*line, name.as_str()),
        (None, None) => (1, DEFAULT_CONGESTION),
    };
    let host = Host::new(&setup, controller(line, name)?, options.timeline);
    let outcome = Outcome { ignored: setup.ignored.clone(), ..Outcome::default() };
    let mut run = Run { setup, host, time: 0, clocks: Vec::new(), outcome };
    for event in &script.events {
        if run.event(event)? == Next::End {
            break;
        }
    }
    run.outcome.timeline = run.host.timeline.take().unwrap_or_default();
    Ok(run.outcome)
}

/// Whether a run continues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    Event,
    End,
}

/// A run.
pub(crate) struct Run {
    pub setup: Setup,
    pub host: Host,
    /// Time of the latest event, which relative times count from, microseconds.
    time: u64,
    /// The script's TSvals of our packets, and the machine's.
    pub clocks: Vec<(u32, u32)>,
    pub outcome: Outcome,
}

impl Run {
    fn event(&mut self, event: &Event) -> Result<Next, ScriptError> {
        let (from, to) = match event.time {
            Time::At(time) => (time, time),
            Time::After(from, to) => (self.time + from, self.time + to),
            Time::Any => (self.time, self.time + ANY_TIME),
        };
        if from < self.time {
            return Err(ScriptError::new(event.line, "the event is before the one above", "times must ascend"));
        }
        self.time = from;
        match &event.action {
            Action::Expect(packet) => {
                let next = self.expect(&Expected { line: event.line, packet, from, to })?;
                if from < to {
                    self.time = self.host.now.max(from);
                }
                return Ok(next);
            }
            _ => self.host.run_until(from),
        }
        match &event.action {
            Action::Inject(packet) => self.inject(event.line, packet),
            Action::Call(call) => Ok(self.call(event.line, call)),
            Action::Code(code) => self.check(event.line, code),
            Action::Expect(_) => Ok(Next::Event),
        }
    }

    fn call(&mut self, line: usize, call: &Call) -> Next {
        match call {
            Call::Nothing | Call::Option(_) => {}
            Call::Connect => self.host.handle(Input::Connect),
            Call::Write(bytes) => {
                let (segments, lacking) = self.host.segments.write(*bytes);
                self.host.tell(|_| format!("write {bytes}"));
                self.host.handle(Input::Write { segments, lacking });
                self.host.tell(Host::state);
            }
            Call::Close => return self.end(line),
        }
        Next::Event
    }

    /// Called at the end of the connection, which is not run.
    pub(crate) fn end(&mut self, line: usize) -> Next {
        self.outcome.end = Some(line);
        Next::End
    }

    /// Called when a packet arrives from the peer.
    fn inject(&mut self, line: usize, packet: &Packet) -> Result<Next, ScriptError> {
        if packet.has('F') || packet.has('R') {
            return Ok(self.end(line));
        }
        if packet.has('S') {
            // The SYN to a server, which answers when the script expects it; or the answer to our SYN.
            if self.setup.connects && !self.host.is_established {
                self.host.establish(packet.window.unwrap_or(0), tsval(packet));
            }
            return Ok(Next::Event);
        }
        if !self.host.is_established {
            self.host.establish(self.window(packet), tsval(packet));
            // The script itself answers the SYN-ACK.
            self.host.sent.clear();
        }
        self.receive_data(line, packet)?;
        self.acknowledge(line, packet)
    }

    fn receive_data(&mut self, line: usize, packet: &Packet) -> Result<(), ScriptError> {
        let mss = self.setup.mss;
        if packet.len == 0 {
            return Ok(());
        }
        if packet.seq % mss != 1 || !packet.len.is_multiple_of(mss) || packet.len > MAX_PACKET {
            let message = "data that is not whole segments is not supported";
            return Err(ScriptError::new(
                line,
                message,
                format!("segments have {mss} bytes, the first begins with byte 1"),
            ));
        }
        self.host.receive(packet, mss);
        Ok(())
    }

    fn acknowledge(&mut self, line: usize, packet: &Packet) -> Result<Next, ScriptError> {
        let Some(byte) = packet.ack else { return Ok(Next::Event) };
        let mut sack_blocks = SackBlocks::default();
        let options = packet.options.clone().unwrap_or_default();
        for (start, end) in options.sack {
            sack_blocks.push((self.segment(line, start)?, self.segment(line, end)?));
        }
        let echoed = options.timestamps.map_or(0, |(_, tsecr)| tsecr);
        let ack = Ack {
            ack: self.segment(line, byte)?,
            receive_window: self.window(packet),
            tsval: tsval(packet),
            tsecr: self.clocks.iter().rev().find(|(script, _)| *script == echoed).map_or(0, |(_, machine)| *machine),
            sack_blocks,
            ece: packet.has('E'),
            ..Ack::default()
        };
        self.host.tell(|_| format!("< ack {byte}"));
        self.host.handle(Input::Ack(&ack));
        self.host.tell(Host::state);
        Ok(Next::Event)
    }

    /// The segment that begins at a byte.
    fn segment(&self, line: usize, byte: u64) -> Result<u64, ScriptError> {
        self.host.segments.at(byte).ok_or_else(|| {
            let message = format!("byte {byte} is not the first of a segment that was written");
            let help =
                format!("the machines work with whole segments: {} bytes, or the rest of a write", self.setup.mss);
            ScriptError::new(line, message, help)
        })
    }

    fn window(&self, packet: &Packet) -> u64 {
        packet.window.unwrap_or(0) << self.setup.window_shift
    }

    /// Evaluates assertions.
    fn check(&mut self, line: usize, code: &str) -> Result<Next, ScriptError> {
        let names = names(&self.host);
        for (offset, statement) in statements(code) {
            let help = "an assertion is like `assert tcpi_snd_cwnd == 10`";
            let holds = holds(&statement, &names).map_err(|message| ScriptError::new(line + offset, message, help))?;
            if !holds {
                return Ok(self.differs(line + offset, statement.clone(), values(&statement, &names)));
            }
            self.outcome.assertions += 1;
        }
        Ok(Next::Event)
    }

    /// Ends the run with a difference.
    pub(crate) fn differs(&mut self, line: usize, expected: String, found: String) -> Next {
        self.host.tell(|_| format!("difference at line {line}"));
        self.outcome.difference = Some(Difference { line, expected, found, state: self.host.state() });
        Next::End
    }
}

/// The TSval of a packet of the peer.
fn tsval(packet: &Packet) -> u32 {
    packet.options.as_ref().and_then(|options| options.timestamps).map_or(0, |(tsval, _)| tsval)
}

/// A time in words.
pub(crate) fn at(micros: u64) -> String {
    format!("at {} s", seconds(micros))
}
