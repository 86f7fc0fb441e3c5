//! Both ends of a multipath QUIC connection, and what is measured of its paths.

use crate::connection::SenderStatus;
use crate::mptcp::SubflowStats;
use record::Distribution;
use transport::quic::{Packet, PathState, PathStatus, Receiver, Reply, ReplyContent, Sender};
use transport::tcp::sender::SenderCounters;
use units::{Instant, Span};

/// Both ends of a multipath QUIC connection.
#[derive(Debug)]
pub(crate) struct QuicConnection {
    pub sender: Sender,
    pub receiver: Receiver,
    pub paths: Vec<SubflowStats>,
    pub protocol_delay: Distribution,
    pub head_of_line_degree: Distribution,
    pub head_of_line: Distribution,
}

impl QuicConnection {
    pub(crate) fn new(sender: Sender, receiver: Receiver, paths: &[usize]) -> Self {
        Self {
            sender,
            receiver,
            paths: paths.iter().map(|path| SubflowStats::new(*path)).collect(),
            protocol_delay: Distribution::default(),
            head_of_line_degree: Distribution::default(),
            head_of_line: Distribution::default(),
        }
    }

    /// Leaves the distributions of times out of the record.
    pub(crate) fn leave_out_distributions(&mut self) {
        let Self { protocol_delay, head_of_line_degree, head_of_line, paths, .. } = self;
        for distribution in [protocol_delay, head_of_line_degree, head_of_line] {
            distribution.turn_off();
        }
        paths.iter_mut().for_each(SubflowStats::turn_off);
    }

    /// Measures after the sender has handled a packet of the receiver. Returns the RTT sample that it gave, if any.
    pub(crate) fn measure_reply(&mut self, reply: &Reply) -> Option<Span> {
        let ReplyContent::Ack(ack) = &reply.content else { return None };
        let index = usize::from(ack.path);
        let path = self.sender.paths().nth(index).expect("the acknowledgement names a path of the connection");
        let sample = path.latest_sample.filter(|_| path.state == PathState::Up);
        if let Some(rtt) = sample {
            self.paths[index].rtt.add(rtt);
            self.paths[index].srtt.add(path.smoothed_rtt);
        }
        let (delay, degree) = (&mut self.protocol_delay, &mut self.head_of_line_degree);
        self.sender.drain_delays(|protocol_delay, head_of_line_degree| {
            delay.add(protocol_delay);
            degree.add(head_of_line_degree);
        });
        sample
    }

    /// Hands a packet to the receiver. Returns what is to be sent at once, if anything.
    pub(crate) fn on_packet(&mut self, now: Instant, packet: &Packet, bytes: u32, marked: bool) -> Option<Reply> {
        if packet.has_data() {
            self.paths[usize::from(packet.path)].arrived_bytes += u64::from(bytes);
        }
        let reply = self.receiver.handle(now, packet, marked);
        let waits = &mut self.head_of_line;
        self.receiver.drain_reassembly_delays(|wait| waits.add(wait));
        reply
    }

    /// The paths' senders, in the terms of a TCP's.
    pub(crate) fn senders(&self) -> impl Iterator<Item = SenderStatus> + '_ {
        self.sender.paths().map(|path| status(&path))
    }
}

fn status(path: &PathStatus) -> SenderStatus {
    let counters = path.counters;
    SenderStatus {
        counters: SenderCounters {
            sent: counters.sent,
            retransmitted: counters.retransmitted,
            lost: counters.lost,
            recoveries: counters.recoveries,
            timeouts: counters.probe_timeouts,
            ..SenderCounters::default()
        },
        decision: path.decision,
        // Before the first sample it is a guess.
        srtt: if path.state == PathState::Up { path.smoothed_rtt } else { Span::ZERO },
        in_flight: path.in_flight,
    }
}
