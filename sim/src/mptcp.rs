//! Both ends of an MPTCP connection, and the measurements of its subflows.

use crate::multipath::MultipathStats;
use transport::mptcp::{Ack, Receiver, Segment, Sender, SubflowState};
use transport::tcp::SegmentKind;
use units::{Instant, Span};

/// Bytes of the DSS option on an acknowledgement (RFC 8684 section 3.3): a Data ACK of 32 bits.
pub(crate) const DATA_ACK_OPTION: u32 = 8;

/// Both ends of an MPTCP connection.
#[derive(Debug)]
pub(crate) struct MptcpConnection {
    pub sender: Sender,
    pub receiver: Receiver,
    pub stats: MultipathStats,
    /// Bytes of the DSS option on a data segment.
    dss_option_bytes: u32,
}

impl MptcpConnection {
    pub(crate) fn new(sender: Sender, receiver: Receiver, paths: &[usize], dss_option_bytes: u32) -> Self {
        Self { sender, receiver, stats: MultipathStats::new(paths), dss_option_bytes }
    }

    /// Bytes that MPTCP adds to a segment's headers. (The options of a handshake are left out.)
    pub(crate) fn option_bytes(&self, segment: &Segment) -> u32 {
        if segment.tcp.kind == SegmentKind::Data { self.dss_option_bytes } else { 0 }
    }

    /// The subflow on which a client's request goes: the first one that is up, and the next one after each retransmission.
    /// If none is up, the first one, which opens the connection.
    pub(crate) fn request_subflow(&self, retransmissions: u32) -> u16 {
        let states = self.sender.subflows().zip(0..);
        let up: Vec<u16> =
            states.filter(|((_, state), _)| *state == SubflowState::Up).map(|(_, subflow)| subflow).collect();
        (retransmissions as usize).checked_rem(up.len()).map_or(0, |turn| up[turn])
    }

    /// Measures after the sender has handled an acknowledgement. Returns the RTT sample that it gave, if any.
    pub(crate) fn measure_ack(&mut self, ack: &Ack) -> Option<Span> {
        let (tcp, state) = self
            .sender
            .subflows()
            .nth(usize::from(ack.subflow))
            .expect("the acknowledgement names a subflow of the connection");
        // A removed subflow ignores acknowledgements: its latest sample is an old one.
        let sample = tcp.last_rtt().filter(|_| state != SubflowState::Removed);
        if let Some(rtt) = sample {
            self.stats.add_rtt(usize::from(ack.subflow), rtt, tcp.srtt());
        }
        self.sender.drain_delays(|delay, degree| self.stats.add_delays(delay, degree));
        sample
    }

    /// Hands a segment to the receiver. Returns the acknowledgement to be sent at once, if any.
    pub(crate) fn on_segment(&mut self, now: Instant, segment: &Segment, bytes: u32, marked: bool) -> Option<Ack> {
        if segment.tcp.kind == SegmentKind::Data {
            self.stats.subflows[usize::from(segment.subflow)].arrived_bytes += u64::from(bytes);
        }
        let ack = self.receiver.handle(now, segment, marked);
        self.receiver.drain_reassembly_delays(|wait| self.stats.head_of_line.add(wait));
        ack
    }
}
