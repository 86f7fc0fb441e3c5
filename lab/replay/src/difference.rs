//! The first difference of two recordings of the same script.

use crate::recording::{Recording, Sent, SentKind, State};
use crate::script::Script;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The tolerance of a comparison.
#[derive(Clone, Copy, Debug)]
pub struct Tolerance {
    /// Greatest difference between the times at which a packet is sent, microseconds.
    pub time_us: u64,
}

impl Tolerance {
    /// For a kernel in virtual time.
    pub const VIRTUAL: Self = Self { time_us: 100 };
    /// For a kernel in real time, on a machine that also reads the packets.
    pub const REAL_TIME: Self = Self { time_us: 2500 };

    /// For the recording of a kernel.
    #[must_use]
    pub fn of(kernel: &Recording) -> Self {
        if kernel.played.is_some() { Self::REAL_TIME } else { Self::VIRTUAL }
    }
}

/// The point at which two recordings begin to differ.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Difference {
    /// Index of the acknowledgement at which they differ; the number of acknowledgements if they differ after the last one.
    pub ack: usize,
    /// The number of packets before it that are the same.
    #[serde(default)]
    pub sent: usize,
    /// The field of the state that differs, or `sent`.
    pub what: String,
    /// The place: `before` the acknowledgement (a timer, a write), `after` it, or `sent` in between.
    pub place: Place,
    /// The congestion states before the acknowledgement: ours, then the kernel's.
    pub ca_states: [String; 2],
    /// The value on our side.
    pub ours: String,
    /// The value on the kernel's side.
    pub kernel: String,
}

/// The place of a difference, in the order in which an acknowledgement's are looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Place {
    /// In the packets sent since the acknowledgement before.
    Sent,
    /// In the state before the acknowledgement.
    Before,
    /// In the state after it.
    After,
}

impl Difference {
    /// Differences that may have one cause: the same field at the same place in the same state.
    #[must_use]
    pub fn class(&self) -> String {
        let [ours, _] = &self.ca_states;
        format!("{} {:?} in {ours}", self.what, self.place).to_lowercase()
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { ack, what, place, ours, kernel, .. } = self;
        write!(f, "acknowledgement {ack}, {place:?}: {what} is {ours} in ours and {kernel} in the kernel")
    }
}

/// The first difference of two recordings: our machine's and the kernel's.
#[must_use]
pub fn first_difference(
    script: &Script,
    ours: &Recording,
    kernel: &Recording,
    tolerance: Tolerance,
) -> Option<Difference> {
    let ends =
        (0..=script.acks.len()).map(|index| (index, script.acks.get(index).map_or(script.end_us, |ack| ack.at_us)));
    let mut compared = 0;
    for (index, end) in ends {
        let difference = difference_of_sent([&ours.sent, &kernel.sent], &mut compared, end, tolerance)
            .map(|(ours, kernel)| ("sent".to_owned(), Place::Sent, ours, kernel))
            .or_else(|| difference_of_states(ours.states.get(index)?, kernel.states.get(index)?));
        if let Some((what, place, our_value, kernel_value)) = difference {
            let name = |recording: &Recording| {
                let [before, _] = recording.states.get(index).or(recording.states.last()).copied().unwrap_or_default();
                before.ca_name().to_owned()
            };
            let ca_states = [name(ours), name(kernel)];
            let (sent, ours, kernel) = (compared, our_value, kernel_value);
            return Some(Difference { ack: index, sent, what, place, ca_states, ours, kernel });
        }
    }
    None
}

fn difference_of_states(ours: &[State; 2], kernel: &[State; 2]) -> Option<(String, Place, String, String)> {
    [Place::Before, Place::After].into_iter().zip(ours.iter().zip(kernel)).find_map(|(place, (ours, kernel))| {
        let mut fields = ours.fields().into_iter().zip(kernel.fields());
        let ((name, our_value), (_, kernel_value)) = fields.find(|(ours, kernel)| ours.1 != kernel.1)?;
        Some((name.to_owned(), place, our_value.to_string(), kernel_value.to_string()))
    })
}

/// A packet that only one of the two sent before `end`, or that they sent at different times. The first `compared` packets
/// of both are the same.
fn difference_of_sent(
    all: [&[Sent]; 2],
    compared: &mut usize,
    end: u64,
    tolerance: Tolerance,
) -> Option<(String, String)> {
    loop {
        let next = all.map(|sent| sent.get(*compared));
        let is_before = |sent: &&Sent, end: u64| sent.at_us < end;
        if !next.iter().flatten().any(|sent| is_before(sent, end)) {
            return None;
        }
        match next {
            // A packet sent just before the end on one side may be sent just after it on the other.
            [Some(ours), Some(kernel)] if is_same(ours, kernel, tolerance) => *compared += 1,
            [Some(only), None] | [None, Some(only)] if only.at_us + tolerance.time_us >= end => return None,
            _ => {
                let describe = |sent: Option<&Sent>| sent.map_or_else(|| "nothing".to_owned(), ToString::to_string);
                let [ours, kernel] = next.map(|sent| describe(sent.filter(|sent| is_before(sent, end))));
                return Some((ours, kernel));
            }
        }
    }
}

fn is_same(ours: &Sent, kernel: &Sent, tolerance: Tolerance) -> bool {
    let content = |sent: &Sent| (sent.seq, sent.bytes, sent.kind, sent.cwr);
    content(ours) == content(kernel) && ours.at_us.abs_diff(kernel.at_us) <= tolerance.time_us
}

impl fmt::Display for Sent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.kind {
            SentKind::New => "segment",
            SentKind::Retransmission => "again segment",
            SentKind::Probe => "a window probe at segment",
        };
        let cwr = if self.cwr { " with CWR" } else { "" };
        write!(f, "{kind} {} ({} bytes{cwr}) at {:.1} ms", self.seq, self.bytes, self.at_us as f64 / 1000.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::script::{PeerAck, Setup};

    const SETUP: Setup = Setup {
        release: control::LinuxRelease::V6_1,
        max_header: 256,
        tick_us: 10_000,
        send_buffer: 1 << 20,
        congestion: String::new(),
        mss: 1024,
        sack: true,
        timestamps: false,
        ecn: false,
        tso: true,
        connect_us: 0,
        established_us: 10,
        window: 10_240,
    };

    /// The packets that were sent, around an acknowledgement at 1000 us.
    fn difference(ours: &[u64], kernel: &[u64]) -> Option<usize> {
        let ack = PeerAck { at_us: 1000, ..PeerAck::default() };
        let script = Script { setup: SETUP, writes: Vec::new(), acks: vec![ack], end_us: 3000 };
        let recording = |times: &[u64]| {
            let sent = |(seq, at_us): (usize, &u64)| Sent {
                at_us: *at_us,
                seq: seq as u64,
                bytes: 1024,
                kind: SentKind::New,
                cwr: false,
            };
            let states = vec![[State::default(); 2]];
            Recording { states, sent: times.iter().enumerate().map(sent).collect(), late_us: 0, played: None }
        };
        let tolerance = Tolerance::VIRTUAL;
        first_difference(&script, &recording(ours), &recording(kernel), tolerance).map(|difference| difference.ack)
    }

    #[test]
    fn a_packet_just_before_an_acknowledgement_may_be_just_after_it() {
        assert_eq!(difference(&[990, 1500], &[1010, 1550]), None);
        assert_eq!(difference(&[1010, 1500], &[990, 1550]), None);
        assert_eq!(difference(&[990, 1500], &[1110, 1550]), Some(0), "too much later");
        assert_eq!(difference(&[990, 1500], &[1010, 1650]), Some(1));
        assert_eq!(difference(&[990], &[1010, 1500]), Some(1), "only one of the two sends it");
        assert_eq!(difference(&[990, 2950], &[1010]), None, "the script may have ended");
    }
}
