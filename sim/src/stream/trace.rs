//! What a trace has of a flow's sender. The engine asks in traced runs only.

use crate::protocol::Host;
use crate::stream::StreamFlow;
use crate::stream::transport::{Sender, Transport};
use crate::trace::{Traced, TracedSender};
use schedule::Choices;

impl<T: Transport> StreamFlow<T> {
    /// Keeps the choices of the scheduler from now on.
    pub(super) fn keep_choices(&mut self) {
        self.sender.choices_mut().into_iter().for_each(Choices::keep);
    }

    /// Traces the RTT sample and the scheduler's choices since the last call.
    #[cold]
    pub(super) fn trace_samples(&mut self, host: &mut Host<'_>) {
        let flow = host.flow;
        if let Some((subflow, rtt)) = self.latest_rtt.take() {
            host.network.push_trace(Traced::Rtt { flow, subflow, rtt });
        }
        let choices = self.sender.choices_mut().map(Choices::take).unwrap_or_default();
        choices.into_iter().for_each(|choice| host.network.push_trace(Traced::Choice { flow, choice }));
    }

    /// Traces the state of the sender when it has nothing more to send now.
    #[cold]
    pub(super) fn trace_state(&mut self, host: &mut Host<'_>) {
        let flow = host.flow;
        for packet in self.sender.declared_lost() {
            host.network.push_trace(Traced::DeclaredLost { flow, packet: *packet });
        }
        for (sender, subflow) in self.sender.senders().zip(0..) {
            host.network.push_trace(Traced::Sender(TracedSender {
                flow,
                subflow,
                cwnd: sender.decision.cwnd,
                ssthresh: sender.decision.ssthresh,
                pacing_rate: sender.decision.pacing_rate,
                in_flight: sender.in_flight,
                srtt: sender.srtt,
                ca_state: sender.ca_state,
                lost: sender.counters.lost,
                timeouts: sender.counters.timeouts,
            }));
        }
        host.network.push_trace(Traced::Limit { flow, subflow: None, limit: self.sender.limit() });
        for (sender, subflow) in self.sender.senders().zip(0..).take(self.transport.paths().len()) {
            host.network.push_trace(Traced::Limit { flow, subflow: Some(subflow), limit: sender.limit });
        }
    }
}
