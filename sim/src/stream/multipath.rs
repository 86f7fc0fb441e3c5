//! Measurements of a connection over several paths, by MPTCP or by multipath QUIC.

use record::{Distribution, Multipath};
use units::Span;

/// The measurements of a sender.
#[derive(Debug, Default)]
pub(crate) struct SenderStats {
    pub subflows: Vec<SubflowRtt>,
    protocol_delay: Distribution,
    head_of_line_degree: Distribution,
}

/// The RTT samples and the smoothed RTTs of a subflow, or of a path of a QUIC connection.
#[derive(Debug, Default)]
pub(crate) struct SubflowRtt {
    pub rtt: Distribution,
    pub srtt: Distribution,
}

/// The measurements of a receiver.
#[derive(Debug, Default)]
pub(crate) struct ReceiverStats {
    /// Bytes of data packets that reached the receiving host, headers included: by subflow.
    pub arrived_bytes: Vec<u64>,
    pub head_of_line: Distribution,
}

impl SenderStats {
    pub(crate) fn new(subflows: usize) -> Self {
        Self { subflows: (0..subflows).map(|_| SubflowRtt::default()).collect(), ..Self::default() }
    }

    /// Leaves the distributions of times out of the record.
    pub(crate) fn leave_out_distributions(&mut self) {
        let of_subflows = self.subflows.iter_mut().flat_map(|subflow| [&mut subflow.rtt, &mut subflow.srtt]);
        let of_data = [&mut self.protocol_delay, &mut self.head_of_line_degree];
        of_data.into_iter().chain(of_subflows).for_each(Distribution::turn_off);
    }

    /// The distributions of the whole connection, each with its column.
    pub(crate) fn distributions(&self) -> [(&'static str, &Distribution); 2] {
        [("protocol_delay_ms", &self.protocol_delay), ("head_of_line_degree_ms", &self.head_of_line_degree)]
    }

    /// Adds an RTT sample of a subflow.
    #[inline]
    pub(crate) fn add_rtt(&mut self, subflow: u16, rtt: Span, srtt: Span) {
        let subflow = &mut self.subflows[usize::from(subflow)];
        subflow.rtt.add(rtt);
        subflow.srtt.add(srtt);
    }

    /// Adds the delays of data that was acknowledged.
    #[inline]
    pub(crate) fn add_delays(&mut self, protocol_delay: Span, head_of_line_degree: Span) {
        self.protocol_delay.add(protocol_delay);
        self.head_of_line_degree.add(head_of_line_degree);
    }

    /// The record of the sender, which has sent this many packets on several subflows at once and on another subflow again.
    pub(crate) fn record(&self, redundant_packets: u64, reinjected_packets: u64) -> Multipath {
        Multipath {
            protocol_delay_ms: self.protocol_delay.summary(),
            head_of_line_degree_ms: self.head_of_line_degree.summary(),
            redundant_packets,
            reinjected_packets,
            ..Multipath::default()
        }
    }
}

impl ReceiverStats {
    pub(crate) fn new(subflows: usize) -> Self {
        Self { arrived_bytes: vec![0; subflows], ..Self::default() }
    }

    /// Counts the bytes of a data packet.
    #[inline]
    pub(crate) fn add_arrival(&mut self, subflow: u16, bytes: u32) {
        self.arrived_bytes[usize::from(subflow)] += u64::from(bytes);
    }

    /// The record of the receiver, in addition to the sender's.
    pub(crate) fn record(&self, max_out_of_order: u64, copies_arrived_first: u64, of_sender: Multipath) -> Multipath {
        Multipath {
            head_of_line_delay_ms: self.head_of_line.summary(),
            max_out_of_order_packets: max_out_of_order,
            redundant_first_packets: copies_arrived_first,
            ..of_sender
        }
    }
}

/// Those methods of a sender of several paths that its fields `machine` and `stats` have.
macro_rules! multipath_sender_methods {
    () => {
        fn stats(&self) -> Option<&SenderStats> {
            Some(&self.stats)
        }

        fn stats_mut(&mut self) -> Option<&mut SenderStats> {
            Some(&mut self.stats)
        }

        fn scheduler_mut(&mut self) -> Option<&mut Box<dyn Scheduler>> {
            Some(self.machine.scheduler_mut())
        }

        fn choices_mut(&mut self) -> Option<&mut Choices> {
            Some(self.machine.choices_mut())
        }
    };
}
pub(super) use multipath_sender_methods;

/// Those methods of a receiver of several paths that its fields `machine` and `stats` have.
macro_rules! multipath_receiver_methods {
    () => {
        fn stats(&self) -> Option<&ReceiverStats> {
            Some(&self.stats)
        }

        fn stats_mut(&mut self) -> Option<&mut ReceiverStats> {
            Some(&mut self.stats)
        }

        fn record(&self, mss: u32, flow: Flow) -> Flow {
            let counters = self.machine.counters();
            let of_sender = flow.multipath.unwrap_or_default();
            let multipath = self.stats.record(counters.max_out_of_order, counters.copies_arrived_first, of_sender);
            Flow { duplicate_bytes: Some(counters.duplicates * u64::from(mss)), multipath: Some(multipath), ..flow }
        }
    };
}
pub(super) use multipath_receiver_methods;

/// Lets the application's commands be inputs of a machine of several paths.
macro_rules! commands_are_inputs {
    ($input:ty) => {
        impl From<Command> for $input {
            fn from(command: Command) -> Self {
                match command {
                    Command::Connect => Self::Connect,
                    Command::Write { segments, .. } => Self::Write(segments),
                    Command::Stop => Self::Stop,
                    Command::Timeout => Self::Timeout,
                }
            }
        }
    };
}
pub(super) use commands_are_inputs;
