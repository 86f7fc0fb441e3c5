//! Both ends of an MPTCP connection, and what is measured of its subflows.

use record::Distribution;
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
    pub subflows: Vec<SubflowStats>,
    /// Bytes of the DSS option on a data segment.
    dss_option_bytes: u32,
    pub protocol_delay: Distribution,
    pub head_of_line_degree: Distribution,
    pub head_of_line: Distribution,
}

/// The measurements of one subflow, or of one path of a multipath QUIC connection.
#[derive(Debug)]
pub(crate) struct SubflowStats {
    /// Index of its path.
    pub path: usize,
    pub rtt: Distribution,
    pub srtt: Distribution,
    /// Bytes of data packets that reached the receiving host, headers included.
    pub arrived_bytes: u64,
}

impl SubflowStats {
    pub(crate) fn new(path: usize) -> Self {
        Self { path, rtt: Distribution::default(), srtt: Distribution::default(), arrived_bytes: 0 }
    }

    /// Leaves the distributions of times out of the record.
    pub(crate) fn turn_off(&mut self) {
        self.rtt.turn_off();
        self.srtt.turn_off();
    }
}

impl MptcpConnection {
    pub(crate) fn new(sender: Sender, receiver: Receiver, paths: &[usize], dss_option_bytes: u32) -> Self {
        Self {
            sender,
            receiver,
            subflows: paths.iter().map(|path| SubflowStats::new(*path)).collect(),
            dss_option_bytes,
            protocol_delay: Distribution::default(),
            head_of_line_degree: Distribution::default(),
            head_of_line: Distribution::default(),
        }
    }

    /// Leaves the distributions of times out of the record.
    pub(crate) fn leave_out_distributions(&mut self) {
        let Self { protocol_delay, head_of_line_degree, head_of_line, subflows, .. } = self;
        for distribution in [protocol_delay, head_of_line_degree, head_of_line] {
            distribution.turn_off();
        }
        subflows.iter_mut().for_each(SubflowStats::turn_off);
    }

    /// Bytes that MPTCP adds to a segment's headers. (The options of a handshake are left out.)
    pub(crate) fn option_bytes(&self, segment: &Segment) -> u32 {
        if segment.tcp.kind == SegmentKind::Data { self.dss_option_bytes } else { 0 }
    }

    /// The subflow on which a client's request goes: the first one that is up, and with each retransmission so far the next
    /// one. Where none is, the first one, which opens the connection.
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
            let stats = &mut self.subflows[usize::from(ack.subflow)];
            stats.rtt.add(rtt);
            stats.srtt.add(tcp.srtt());
        }
        let (delay, degree) = (&mut self.protocol_delay, &mut self.head_of_line_degree);
        self.sender.drain_delays(|protocol_delay, head_of_line_degree| {
            delay.add(protocol_delay);
            degree.add(head_of_line_degree);
        });
        sample
    }

    /// Hands a segment to the receiver. Returns the acknowledgement to be sent at once, if any.
    pub(crate) fn on_segment(&mut self, now: Instant, segment: &Segment, bytes: u32, marked: bool) -> Option<Ack> {
        if segment.tcp.kind == SegmentKind::Data {
            self.subflows[usize::from(segment.subflow)].arrived_bytes += u64::from(bytes);
        }
        let ack = self.receiver.handle(now, segment, marked);
        let waits = &mut self.head_of_line;
        self.receiver.drain_reassembly_delays(|wait| waits.add(wait));
        ack
    }
}
