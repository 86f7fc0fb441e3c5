//! Both ends of a multipath QUIC connection, and what is measured of its paths.

use crate::connection::SenderStatus;
use crate::multipath::MultipathStats;
use transport::quic::{Packet, PathState, PathStatus, Receiver, Reply, ReplyContent, Sender};
use transport::tcp::sender::SenderCounters;
use units::{Instant, Span};

/// Both ends of a multipath QUIC connection.
#[derive(Debug)]
pub(crate) struct QuicConnection {
    pub sender: Sender,
    pub receiver: Receiver,
    pub stats: MultipathStats,
}

impl QuicConnection {
    pub(crate) fn new(sender: Sender, receiver: Receiver, paths: &[usize]) -> Self {
        Self { sender, receiver, stats: MultipathStats::new(paths) }
    }

    /// Measures after the sender has handled a packet of the receiver. Returns the path and the RTT sample that it
    /// gave, if any.
    pub(crate) fn measure_reply(&mut self, reply: &Reply) -> Option<(u16, Span)> {
        let ReplyContent::Ack(ack) = &reply.content else { return None };
        let index = usize::from(ack.path);
        let path = self.sender.paths().nth(index).expect("the acknowledgement names a path of the connection");
        let sample = path.latest_sample.filter(|_| path.state == PathState::Up);
        if let Some(rtt) = sample {
            self.stats.add_rtt(index, rtt, path.smoothed_rtt);
        }
        self.sender.drain_delays(|delay, degree| self.stats.add_delays(delay, degree));
        sample.map(|rtt| (ack.path, rtt))
    }

    /// Hands a packet to the receiver. Returns what is to be sent at once, if anything.
    pub(crate) fn on_packet(&mut self, now: Instant, packet: &Packet, bytes: u32, marked: bool) -> Option<Reply> {
        if packet.has_data() {
            self.stats.subflows[usize::from(packet.path)].arrived_bytes += u64::from(bytes);
        }
        let reply = self.receiver.handle(now, packet, marked);
        self.receiver.drain_reassembly_delays(|wait| self.stats.head_of_line.add(wait));
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
            undone: counters.undone,
            timeouts: counters.probe_timeouts,
            ..SenderCounters::default()
        },
        decision: path.decision,
        // Before the first sample it is a guess.
        srtt: if path.state == PathState::Up { path.smoothed_rtt } else { Span::ZERO },
        in_flight: path.in_flight,
        ca_state: path.ca_state,
        limit: path.limit,
        declared_lost: counters.lost,
        spurious_losses: counters.spurious_losses,
    }
}
