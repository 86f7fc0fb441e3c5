//! Measurements of a connection over several paths, by MPTCP or by multipath QUIC.

use record::Distribution;
use units::Span;

/// The measurements of a connection.
#[derive(Debug, Default)]
pub(crate) struct MultipathStats {
    pub subflows: Vec<SubflowStats>,
    pub protocol_delay: Distribution,
    pub head_of_line_degree: Distribution,
    pub head_of_line: Distribution,
}

/// The measurements of one subflow, or of one path of a QUIC connection.
#[derive(Debug, Default)]
pub(crate) struct SubflowStats {
    /// Index of its path.
    pub path: usize,
    pub rtt: Distribution,
    pub srtt: Distribution,
    /// Bytes of data packets that reached the receiving host, headers included.
    pub arrived_bytes: u64,
}

impl MultipathStats {
    /// The measurements of a connection with a subflow on each of these paths.
    pub(crate) fn new(paths: &[usize]) -> Self {
        let stats = |path: &usize| SubflowStats { path: *path, ..SubflowStats::default() };
        Self { subflows: paths.iter().map(stats).collect(), ..Self::default() }
    }

    /// Leaves the distributions of times out of the record.
    pub(crate) fn leave_out_distributions(&mut self) {
        let Self { protocol_delay, head_of_line_degree, head_of_line, subflows } = self;
        let of_subflows = subflows.iter_mut().flat_map(|subflow| [&mut subflow.rtt, &mut subflow.srtt]);
        let all = [protocol_delay, head_of_line_degree, head_of_line].into_iter().chain(of_subflows);
        all.for_each(Distribution::turn_off);
    }

    /// Adds an RTT sample of a subflow.
    #[inline]
    pub(crate) fn add_rtt(&mut self, subflow: usize, rtt: Span, srtt: Span) {
        self.subflows[subflow].rtt.add(rtt);
        self.subflows[subflow].srtt.add(srtt);
    }

    /// Adds the delays of data that was acknowledged.
    #[inline]
    pub(crate) fn add_delays(&mut self, protocol_delay: Span, head_of_line_degree: Span) {
        self.protocol_delay.add(protocol_delay);
        self.head_of_line_degree.add(head_of_line_degree);
    }
}
