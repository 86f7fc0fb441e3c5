//! Our sender in virtual time.

use crate::explain::Variation;
use crate::recording::{Recording, Sent, SentKind, State};
use crate::script::{Layout, PeerAck, Script, Setup};
use std::collections::BTreeMap;
use transport::tcp::sender::{Input, LossRecovery, Output, SenderConfig};
use transport::tcp::{Ack, SackBlocks, Segment, SegmentKind, SinglePathSender};
use units::{Instant, RngStream, Span};

/// Bytes of the headers of IP and TCP, and of TCP's timestamps.
const HEADERS: u32 = 40;
const TIMESTAMPS: u32 = 12;
/// Number of random streams among which those with extreme numbers are chosen.
const EXTREMES: u64 = 5000;

/// A sender that is driven by hand.
pub(crate) struct Machine {
    sender: SinglePathSender,
    /// The time of its next timer, microseconds.
    deadline: u64,
    /// The data and probes that it has sent, with their times.
    pub(crate) sent: Vec<(u64, Segment)>,
    /// The number of acknowledgements so far.
    acks: usize,
    /// Events with another clock.
    clocks: Vec<(usize, u64)>,
    /// The numbers of acknowledgements at whose tick another timer of the host expires.
    other_timers: Vec<usize>,
    /// Time from connecting to the SYN's departure, microseconds.
    connect_us: u64,
    /// The number of timers that have expired, the numbers of those that expire a tick late, and the tick.
    timers: usize,
    late_timers: Vec<usize>,
    tick_us: u64,
    is_real_time: bool,
}

/// How late an event comes, how long it takes to send a packet, and how long after the event the state is read, nanoseconds.
#[derive(Clone, Copy, Default)]
struct ClockNs {
    late: u64,
    sending: u64,
    reading: u64,
}

impl ClockNs {
    fn drawn(seed: u64, is_real_time: bool) -> Self {
        let mut rng = RngStream::named(seed, "clock");
        let most = match seed % 4 {
            3 if is_real_time => 800_000,
            seed if seed % 2 == 1 => 8000,
            _ => 1000,
        };
        Self { late: rng.below(most), sending: 100 + rng.below(500), reading: rng.below(most) }
    }
}

impl Machine {
    /// A sender with these settings.
    ///
    /// # Errors
    /// There is no such algorithm.
    pub(crate) fn new(setup: &Setup, variation: &Variation) -> Result<Self, String> {
        let entry = control::registry::find(&setup.congestion);
        let entry = entry.ok_or_else(|| format!("there is no congestion control `{}`", setup.congestion))?;
        let controller = entry.controller(&BTreeMap::new()).map_err(|error| format!("{error:?}"))?;
        let mut sender = SinglePathSender::new(config(setup), controller, stream(0));
        sender.pace_single_segments();
        if variation.other_timers.is_some() {
            sender.on_other_timer(Instant::ZERO);
        }
        let other_timers = variation.other_timers.clone().unwrap_or_default();
        let (clocks, connect_us) = (variation.clocks.clone(), variation.connect_us);
        let (late_timers, tick_us) = (variation.late_timers.clone(), setup.tick_us);
        let (deadline, sent, acks, timers) = (u64::MAX, Vec::new(), 0, 0);
        let is_real_time = variation.is_real_time;
        Ok(Self {
            sender,
            deadline,
            sent,
            acks,
            clocks,
            other_timers,
            connect_us,
            timers,
            late_timers,
            tick_us,
            is_real_time,
        })
    }

    /// Connects, and takes the SYN-ACK.
    pub(crate) fn open(&mut self, setup: &Setup) {
        self.step(setup.connect_us + self.connect_us, Input::Connect);
        let tsecr = if setup.timestamps { (setup.connect_us / 1000) as u32 } else { 0 };
        let tsval = u32::from(setup.timestamps);
        let ack = Ack { syn: true, receive_window: u64::from(setup.window), tsval, tsecr, ..Ack::default() };
        self.step(setup.established_us, Input::Ack(&ack));
    }

    /// The application writes this many bytes.
    pub(crate) fn write(&mut self, at_us: u64, bytes: u64, mss: u32) {
        let mss = u64::from(mss);
        let write =
            Input::Write { segments: bytes.div_ceil(mss), lacking: (bytes.next_multiple_of(mss) - bytes) as u32 };
        self.step(at_us, write);
    }

    /// An acknowledgement arrives.
    pub(crate) fn acknowledge(&mut self, ack: &PeerAck) {
        let mut sack_blocks = SackBlocks::default();
        ack.sack.iter().for_each(|block| sack_blocks.push(*block));
        let value = Ack {
            ack: ack.ack,
            receive_window: ack.window,
            tsval: ack.tsval,
            tsecr: ack.tsecr,
            sack_blocks,
            ece: ack.ece,
            ..Ack::default()
        };
        self.acks += 1;
        self.step(ack.at_us, Input::Ack(&value));
    }

    /// When its next timer expires, microseconds.
    pub(crate) fn deadline(&self) -> u64 {
        self.deadline
    }

    /// Lets the timers expire that are due by this time.
    pub(crate) fn run_until(&mut self, until_us: u64) {
        while self.deadline <= until_us {
            self.timers += usize::from(self.is_tick(self.deadline));
            self.step(self.deadline, Input::Timeout);
        }
    }

    /// Whether it is the time of a tick, at which timers expire.
    fn is_tick(&self, at_us: u64) -> bool {
        at_us.is_multiple_of(self.tick_us)
    }

    pub(crate) fn state(&self) -> State {
        let (decision, pipe) = (self.sender.decision(), self.sender.pipe());
        State {
            cwnd: decision.cwnd,
            ssthresh: decision.ssthresh,
            ca_state: self.sender.ca_state() as u8,
            unacked: pipe.packets_out,
            sacked: pipe.sacked_out,
            lost: pipe.lost_out,
            retrans: pipe.retrans_out,
            reordering: self.sender.reordering(),
        }
    }

    /// The clock at the latest event.
    fn clock(&self) -> ClockNs {
        let clock = self.clocks.iter().find(|(acks, _)| *acks == self.acks);
        clock.map(|(_, seed)| ClockNs::drawn(*seed, self.is_real_time)).unwrap_or_default()
    }

    /// The state after an acknowledgement that arrived at this time. What is due before it is read, happens before.
    pub(crate) fn state_after(&mut self, at_us: u64) -> State {
        let ClockNs { late, reading, .. } = self.clock();
        if reading > 0 {
            self.run_until(at_us + (late + reading) / 1000);
        }
        self.state()
    }

    fn step(&mut self, at_us: u64, input: Input<'_>) {
        let ClockNs { late, sending, .. } = self.clock();
        // A deadline in real time has what it is late.
        let event_late = if self.is_real_time && matches!(input, Input::Timeout) { 0 } else { late };
        let mut packets = 0;
        // In microseconds, as the kernel's clock.
        let now = |packets: u64| Instant((at_us * 1000 + event_late + packets * sending) / 1000 * 1000);
        if self.other_timers.contains(&self.acks) {
            self.sender.on_other_timer(now(0));
        }
        self.sender.handle(now(0), input);
        loop {
            match self.sender.poll(now(packets)) {
                Output::Transmit(segment) => {
                    let at_us = now(packets).0 / 1000;
                    self.sent.extend(is_recorded(segment.kind).then_some((at_us, segment)));
                    packets += u64::from(!self.sender.continues_super_segment(&segment, u32::MAX));
                }
                Output::WaitUntil(Instant::NEVER) => return self.deadline = u64::MAX,
                Output::WaitUntil(deadline) => {
                    let deadline_us = deadline.0.div_ceil(1000).max(at_us);
                    let late_us = match self.is_tick(deadline_us) {
                        true if self.late_timers.contains(&self.timers) => self.tick_us,
                        false if self.is_real_time => late / 1000, // the pacer's timer
                        _ => 0,
                    };
                    return self.deadline = deadline_us + late_us;
                }
            }
        }
    }
}

/// The random stream of the controller.
fn stream(seed: u64) -> RngStream {
    RngStream::named(1 + seed, "replay")
}

/// The seeds of the streams, of some thousands, whose first numbers are the least and the greatest.
pub(crate) fn extreme_streams() -> [u64; 2] {
    let first = |seed: &u64| stream(*seed).bits();
    [(1..EXTREMES).min_by_key(first), (1..EXTREMES).max_by_key(first)].map(Option::unwrap_or_default)
}

fn is_recorded(kind: SegmentKind) -> bool {
    matches!(kind, SegmentKind::Data | SegmentKind::WindowProbe)
}

/// Plays a script on our machine.
///
/// # Errors
/// There is no such algorithm.
pub fn play(script: &Script) -> Result<Recording, String> {
    play_with(script, &Variation::default())
}

/// Plays a script on our machine with a change.
pub(crate) fn play_with(script: &Script, variation: &Variation) -> Result<Recording, String> {
    play_noting_chances(script, variation).map(|(recording, _)| recording)
}

/// What may happen otherwise in a play.
pub(crate) struct Chances {
    /// The acknowledgements at which the controller drew, or after which it did before the next one.
    pub(crate) drawn: Vec<usize>,
    /// The number of timers that expired.
    pub(crate) timers: usize,
}

/// Plays a script on our machine with a change.
pub(crate) fn play_noting_chances(script: &Script, variation: &Variation) -> Result<(Recording, Chances), String> {
    let (setup, layout) = (&script.setup, Layout::new(script));
    let mut machine = Machine::new(setup, variation)?;
    machine.open(setup);
    let mut states = Vec::new();
    let (mut drawn, mut random_stream) = (Vec::new(), machine.sender.random_stream().clone());
    let mut writes = script.writes.iter().peekable();
    for (index, ack) in script.acks.iter().enumerate() {
        while let Some(write) = writes.next_if(|write| write.at_us < ack.at_us) {
            machine.run_until(write.at_us);
            machine.write(write.at_us, write.bytes, setup.mss);
        }
        machine.run_until(ack.at_us);
        drawn.extend((*machine.sender.random_stream() != random_stream).then(|| index.saturating_sub(1)));
        if let Some((_, seed)) = variation.draws.iter().find(|(at, _)| *at == index) {
            machine.sender.draw_from(stream(*seed));
        }
        random_stream = machine.sender.random_stream().clone();
        let before = machine.state();
        machine.acknowledge(ack);
        states.push([before, machine.state_after(ack.at_us)]);
    }
    for write in writes {
        machine.run_until(write.at_us);
        machine.write(write.at_us, write.bytes, setup.mss);
    }
    machine.run_until(script.end_us);
    let has_drawn = *machine.sender.random_stream() != random_stream;
    drawn.extend(has_drawn.then(|| script.acks.len().saturating_sub(1)));
    let timers = machine.timers;
    let sent = machine.sent.iter().map(|(at_us, segment)| record(*at_us, segment, &layout)).collect();
    Ok((Recording { states, sent, late_us: 0, played: None }, Chances { drawn, timers }))
}

fn record(at_us: u64, segment: &Segment, layout: &Layout) -> Sent {
    let kind = match segment {
        Segment { kind: SegmentKind::WindowProbe, .. } => SentKind::Probe,
        Segment { retransmission: true, .. } => SentKind::Retransmission,
        _ => SentKind::New,
    };
    let bytes = if kind == SentKind::Probe { 0 } else { layout.bytes(segment.seq) };
    Sent { at_us, seq: segment.seq, bytes, kind, cwr: segment.cwr }
}

/// A sender as in Linux, with these settings.
fn config(setup: &Setup) -> SenderConfig {
    let headers = HEADERS + if setup.timestamps { TIMESTAMPS } else { 0 };
    SenderConfig {
        release: setup.release,
        mss: setup.mss,
        packet_bytes: setup.mss + headers,
        max_header: setup.max_header,
        initial_window: 10,
        timestamps: setup.timestamps,
        sack: setup.sack,
        ecn: setup.ecn,
        accurate_ecn: false,
        pacing: false,
        tso: setup.tso,
        small_queues: true,
        offload: false,
        send_buffer: setup.send_buffer,
        initial_send_buffer: 16 << 10,
        notsent_lowat: u64::MAX,
        slow_start_after_idle: true,
        early_retrans: true,
        reordering: 3,
        max_reordering: 300,
        recovery: LossRecovery::Rack,
        handshake: true,
        initial_rto: Span::from_secs(1),
        window_clamp: u32::MAX,
        tick: Span::from_micros(setup.tick_us),
    }
}
