//! The TCP sender of any algorithm under any acknowledgements. It has no network, so its check is here.

use control::{CaState, registry};
use std::collections::BTreeMap;
use transport::tcp::sender::{Input, LossRecovery, Output, SenderConfig};
use transport::tcp::{Ack, SackBlocks, SinglePathSender};
use units::{Instant, RngStream, Span};
use wire::check::Choices;

/// Payload of a segment, bytes.
const MSS: u32 = 1000;
/// Segments that one input may send: everything that was ever written.
const MAX_SENT: usize = 1 << 16;

/// Any acknowledgements, writes, pauses and timeouts, in any order. The outstanding segments add up, the window is never
/// zero, and an input sends a bounded number of segments.
///
/// # Panics
/// If that does not hold.
pub fn sender(data: &[u8]) {
    run(data);
}

fn run(data: &[u8]) -> SinglePathSender {
    let mut choices = Choices(data);
    let mut flow = Flow::new(&mut choices);
    flow.input(Input::Connect);
    flow.input(Input::Ack(&Ack { syn: true, receive_window: 100_000, tsval: 1, ..Ack::default() }));
    while !choices.is_empty() {
        flow.step(&mut choices);
    }
    flow.sender
}

struct Flow {
    sender: SinglePathSender,
    now: Instant,
    deadline: Instant,
    snd_nxt: u64,
}

impl Flow {
    fn new(choices: &mut Choices<'_>) -> Self {
        let entries: Vec<_> = registry::entries().into_iter().filter(|entry| !entry.is_coupled()).collect();
        let entry = entries[choices.below(entries.len() as u64) as usize];
        let controller = entry.controller(&BTreeMap::new()).expect("the defaults are valid");
        let sender = SinglePathSender::new(config(choices.byte()), controller, RngStream::named(1, "fuzz"));
        Self { sender, now: Instant(1_000_000_000), deadline: Instant::NEVER, snd_nxt: 0 }
    }

    fn step(&mut self, choices: &mut Choices<'_>) {
        match choices.below(8) {
            0 => self.input(Input::Write { segments: choices.below(64), lacking: choices.below(2) as u32 }),
            1 if self.deadline < Instant::NEVER => {
                self.now = self.now.max(self.deadline);
                self.input(Input::Timeout);
            }
            2 => self.now += Span::from_micros(choices.below(1 << 24)),
            3 => self.now += Span::from_micros(choices.below(1 << 16)),
            _ => {
                let ack = self.ack(choices);
                self.input(Input::Ack(&ack));
            }
        }
    }

    /// An acknowledgement of segments that may or may not have been sent.
    fn ack(&self, choices: &mut Choices<'_>) -> Ack {
        let una = self.sender.acknowledged();
        let near = |choices: &mut Choices<'_>| (una + choices.below(256)).saturating_sub(128);
        let mut sack_blocks = SackBlocks::default();
        for _ in 0..choices.below(4) {
            let start = near(choices);
            sack_blocks.push((start, start + choices.below(16)));
        }
        let now_ms = (self.now.0 / 1_000_000) as u32;
        Ack {
            ack: if choices.below(2) > 0 { una + choices.below(8) } else { near(choices) },
            receive_window: choices.below(2) * u64::from(MSS) * choices.below(256),
            tsval: choices.below(1 << 16) as u32,
            tsecr: now_ms.saturating_sub(choices.below(1 << 12) as u32),
            sack_blocks,
            ece: choices.below(8) == 0,
            ace: choices.byte(),
            ..Ack::default()
        }
    }

    fn input(&mut self, input: Input<'_>) {
        self.sender.handle(self.now, input);
        for _ in 0..MAX_SENT {
            match self.sender.poll(self.now) {
                Output::Transmit(segment) => self.snd_nxt = self.snd_nxt.max(segment.seq + 1),
                Output::WaitUntil(deadline) => {
                    self.deadline = deadline;
                    return self.check();
                }
            }
        }
        panic!("{MAX_SENT} segments at once");
    }

    fn check(&self) {
        let (pipe, decision) = (self.sender.pipe(), self.sender.decision());
        assert!(decision.cwnd > 0 && decision.ssthresh > 0, "{decision:?}");
        assert!(pipe.sacked_out + pipe.lost_out <= pipe.packets_out, "{pipe:?}");
        assert!(pipe.retrans_out <= pipe.packets_out, "{pipe:?}");
        assert!(self.sender.acknowledged() <= self.snd_nxt, "{} of {}", self.sender.acknowledged(), self.snd_nxt);
        assert!(pipe.lost_out == 0 || self.sender.ca_state() > CaState::Disorder, "{pipe:?}");
    }
}

/// A host, by the bits of a byte.
fn config(bits: u8) -> SenderConfig {
    let has = |bit: u8| bits & (1 << bit) != 0;
    SenderConfig {
        release: if has(0) { control::LinuxRelease::V6_18 } else { control::LinuxRelease::V6_1 },
        mss: MSS,
        packet_bytes: MSS + 52,
        max_header: SenderConfig::MAX_HEADER,
        initial_window: 10,
        timestamps: has(1),
        sack: has(2),
        ecn: has(3),
        accurate_ecn: false,
        pacing: has(4),
        tso: has(5),
        small_queues: true,
        offload: false,
        send_buffer: if has(6) { 40 << 10 } else { 8 << 20 },
        initial_send_buffer: 16 << 10,
        notsent_lowat: u64::MAX,
        slow_start_after_idle: true,
        early_retrans: true,
        reordering: 3,
        max_reordering: 300,
        recovery: if has(7) { LossRecovery::Fack } else { LossRecovery::Rack },
        handshake: true,
        initial_rto: Span::from_secs(1),
        window_clamp: u32::MAX,
        tick: Span::from_millis(4),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Inputs that never leave the open state would pass any assertion.
    #[test]
    fn the_saved_inputs_reach_recoveries_timeouts_and_undos() {
        let counters = crate::steps::saved_inputs("sender").into_iter().map(|input| run(&input).counters());
        let [retransmitted, timeouts, undone, renegings] = counters.fold([0; 4], |sums, counters| {
            let counts = [counters.retransmitted, counters.timeouts, counters.undone, counters.renegings];
            [0, 1, 2, 3].map(|index| sums[index] + counts[index])
        });
        assert!(retransmitted > 100 && timeouts > 10 && undone > 0, "{retransmitted} {timeouts} {undone} {renegings}");
        assert!(renegings > 0);
    }
}
