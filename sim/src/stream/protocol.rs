//! A flow of TCP, MPTCP or multipath QUIC as the engine sees it.

use crate::protocol::{Arrival, Counters, End, Host, PathCounters, Protocol, SenderCounters};
use crate::stream::StreamFlow;
use crate::stream::application::{Application, Video};
use crate::stream::multipath::SenderStats;
use crate::stream::transport::{Content, Receiver, Sender, SenderStatus, Transport};
use crate::trace::HeaderSizes;
use control::Controller;
use link::EcnField;
use record::{Distribution, Flow, Requests, Subflow};
use schedule::Scheduler;
use units::{Instant, Span};

impl<T: Transport> Protocol for StreamFlow<T> {
    fn wake(&mut self, end: End, host: &mut Host<'_>) {
        let now = host.now();
        if end == End::Receiver {
            let reply = self.receiver.on_timeout(now);
            self.send_reply(reply, host);
            return self.send_request(host);
        }
        if now == host.start {
            self.start(now);
            host.wake_at(End::Receiver, self.sink_deadline());
        }
        if now >= host.stop && !self.stopped {
            self.stop(now);
        }
        self.wake_source(now);
        self.send_all(host);
    }

    fn receive(&mut self, _end: End, arrival: Arrival, host: &mut Host<'_>) {
        let is_current = arrival.path == self.connection_number || !self.transport.paths().is_empty();
        if !is_current {
            return;
        }
        let now = host.now();
        match T::content(host.body(arrival)) {
            Some(Content::Packet(packet)) => {
                let packets = T::packet_info(packet).packets;
                let reply = self.answer(now, packet, arrival.ecn == EcnField::Ce);
                host.network.delivered_data_packets += u64::from(packets);
                return self.send_reply(reply, host);
            }
            Some(Content::Reply(reply)) => self.on_reply(now, reply),
            Some(Content::Request(number)) => self.on_request(now, number),
            None => return,
        }
        self.send_all(host);
    }

    fn counters(&self) -> Counters {
        let decisions = || self.sender.senders().map(|sender| sender.decision);
        Counters {
            delivered_bytes: self.delivered_bytes(),
            arrived_bytes: self.arrived_bytes,
            sender: SenderCounters {
                sent: self.total(|counters| counters.sent),
                retransmitted: Some(self.total(|counters| counters.retransmitted)),
                cwnd: Some(f64::from(decisions().map(|decision| decision.cwnd).sum::<u32>())),
                ssthresh: decisions().next().filter(|_| self.transport.paths().is_empty()).and_then(ssthresh),
                in_flight: Some(self.sender.senders().map(|sender| sender.in_flight).sum()),
                srtt: self.sender.senders().map(|sender| sender.srtt).filter(|srtt| *srtt > Span::ZERO).min(),
            },
            is_greedy: matches!(self.application, Application::Greedy),
            completed: self.completed,
            peak: Some(self.peak.rate()),
        }
    }

    fn paths(&self) -> Vec<PathCounters<'_>> {
        let (Some(sent), Some(received)) = (self.sender.stats(), self.receiver.stats()) else { return Vec::new() };
        let paths = self.transport.paths().iter().zip(&sent.subflows).zip(&received.arrived_bytes);
        let counters = paths.zip(self.sender.senders()).map(|(((path, stats), arrived_bytes), sender)| PathCounters {
            path: *path,
            arrived_bytes: *arrived_bytes,
            sender: SenderCounters {
                sent: sender.counters.sent,
                retransmitted: Some(sender.counters.retransmitted),
                cwnd: Some(f64::from(sender.decision.cwnd)),
                ssthresh: ssthresh(sender.decision),
                in_flight: Some(sender.in_flight),
                srtt: Some(sender.srtt).filter(|srtt| *srtt > Span::ZERO),
            },
            rtt: &stats.rtt,
            srtt: Some(&stats.srtt),
        });
        counters.collect()
    }

    fn record(&self, start: Instant, end: Instant, flow: Flow) -> Flow {
        let limited = self.limits.buffer_times(&self.sender, end);
        let requests = |client: &crate::stream::application::Client| Requests {
            requests: client.times.count(),
            response_time_ms: client.times.summary(),
        };
        let flow = Flow {
            congestion_control: self.transport.config().entry.name.to_owned(),
            retransmitted_packets: self.total(|counters| counters.retransmitted),
            recoveries: self.total(|counters| counters.recoveries),
            spurious_recoveries: self.total(|counters| counters.undone),
            timeouts: self.total(|counters| counters.timeouts),
            receive_window_limited_s: limited.receive_window.as_secs_f64(),
            send_buffer_limited_s: limited.send_buffer.as_secs_f64(),
            limited_s: self.limits.record(start),
            requests: self.client().map(requests),
            rtt_ms: self.rtt.summary(),
            one_way_delay_ms: self.delivery_times.as_ref().map(|times| times.delay.summary()),
            video: self.video().map(Video::record),
            ..flow
        };
        self.receiver.record(self.mss(), self.sender.record(flow))
    }

    fn record_path(&self, index: usize, start: Instant, subflow: Subflow) -> Subflow {
        let Some(SenderStatus { counters, failures, quic, .. }) = self.sender.senders().nth(index) else {
            return subflow;
        };
        Subflow {
            recoveries: Some(counters.recoveries),
            timeouts: Some(counters.timeouts),
            failures: Some(failures),
            quic,
            limited_s: self.limits.subflow_record(index, start),
            ..subflow
        }
    }

    fn distributions(&self) -> Vec<(&'static str, &Distribution)> {
        let client = self.client().map(|client| ("response_time_ms", &client.times));
        let video = self.video().map(|video| ("frame_delay_ms", &video.delay));
        let of_sender = self.sender.stats().into_iter().flat_map(SenderStats::distributions);
        let of_receiver = self.receiver.stats().map(|stats| ("head_of_line_delay_ms", &stats.head_of_line));
        let relayed = self.delivery_times.as_ref().map(|times| ("one_way_delay_ms", &times.delay));
        let of_application = std::iter::once(("rtt_ms", &self.rtt)).chain(client).chain(video);
        of_application.chain(of_sender).chain(of_receiver).chain(relayed).collect()
    }

    fn path_distributions(&self) -> Vec<(usize, &'static str, &Distribution)> {
        let paths =
            self.transport.paths().iter().zip(self.sender.stats().into_iter().flat_map(|stats| &stats.subflows));
        paths.flat_map(|(path, stats)| [(*path, "rtt_ms", &stats.rtt), (*path, "srtt_ms", &stats.srtt)]).collect()
    }

    fn leave_out_distributions(&mut self) {
        self.rtt.turn_off();
        if let Some(times) = &mut self.delivery_times {
            times.delay.turn_off();
        }
        if let (Some(sent), Some(received)) = (self.sender.stats_mut(), self.receiver.stats_mut()) {
            sent.leave_out_distributions();
            received.head_of_line.turn_off();
        }
    }

    fn finish(&mut self, now: Instant) {
        self.peak.close(now, self.delivered_bytes());
        self.limits.finish(&self.sender, now);
        self.application.stop(now);
    }

    fn controller_failures(&mut self) -> Vec<String> {
        self.keep_controller_failure();
        std::mem::take(&mut self.controller_failures)
    }

    fn controller_mut(&mut self) -> Option<&mut Box<dyn Controller>> {
        self.sender.controller_mut()
    }

    fn scheduler_mut(&mut self) -> Option<&mut Box<dyn Scheduler>> {
        self.sender.scheduler_mut()
    }

    fn start_trace(&mut self) {
        self.keep_choices();
    }

    fn header_sizes(&self) -> Option<HeaderSizes> {
        Some(self.transport.config().header_sizes())
    }
}

/// The slow-start threshold, packets; none while it is infinite.
fn ssthresh(decision: control::Decision) -> Option<f64> {
    (decision.ssthresh != units::INFINITE_SSTHRESH).then(|| f64::from(decision.ssthresh))
}
