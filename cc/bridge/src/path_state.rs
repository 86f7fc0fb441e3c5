//! The state of a path: the packets in flight, its sender, and the report that is open.

use crate::INITIAL_WINDOW;
use crate::report::Report;
use crate::sent_packets::{SentPacket, SentPackets};
use control::{CaState, Cause, Decision, LinuxRelease, PathEvent, PathInfo};
use sender::path::{ControllerHandle, PathSender, SendLimit};
use sender::recovery::SegmentCounter;
use units::{INFINITE_SSTHRESH, Instant, PathId, Span};

/// Probe timeout before the first RTT sample: three times `kInitialRtt` and `max_ack_delay` (RFC 9002, section 6.2).
const INITIAL_RTO: Span = Span::from_millis(999 + 25);

#[derive(Debug)]
pub(crate) struct PathState {
    sender: PathSender,
    mtu: u16,
    /// An MTU that was told within a report, and holds after it.
    next_mtu: Option<u16>,
    packets: SentPackets,
    segments: SegmentCounter,
    /// The time of the latest call that told it.
    latest: Instant,
    /// The time at which packets were sent, if the window has not been validated since.
    sent_at: Option<Instant>,
    is_app_limited: bool,
    report: Option<Report>,
    /// Whether the latest loss was spurious, told before its report.
    is_spurious: bool,
    /// Position of the newest packet ever acknowledged.
    newest_acked: Option<u64>,
    /// The packet from which on losses began the latest reduction, if that may be undone.
    undo_from: Option<u64>,
    /// The first packet after that reduction began.
    reduced_at: u64,
}

impl PathState {
    pub(crate) fn new(id: PathId, now: Instant, mtu: u16, controller: &mut ControllerHandle) -> Self {
        let mut sender = PathSender::new(id, INITIAL_WINDOW, INITIAL_RTO);
        let info = PathInfo {
            mss: mtu.into(),
            initial_window: INITIAL_WINDOW,
            release: LinuxRelease::V6_18,
            ..PathInfo::DEFAULT
        };
        sender.start(now, info, controller);
        Self {
            sender,
            mtu,
            next_mtu: None,
            packets: SentPackets::default(),
            segments: SegmentCounter::default(),
            latest: now,
            sent_at: None,
            is_app_limited: false,
            report: None,
            is_spurious: false,
            newest_acked: None,
            undo_from: None,
            reduced_at: 0,
        }
    }

    pub(crate) fn decision(&self) -> Decision {
        self.sender.decision()
    }

    pub(crate) fn window(&self) -> u64 {
        u64::from(self.decision().cwnd) * u64::from(self.mtu)
    }

    pub(crate) fn ssthresh(&self) -> Option<u64> {
        let ssthresh = self.decision().ssthresh;
        (ssthresh != INFINITE_SSTHRESH).then(|| u64::from(ssthresh) * u64::from(self.mtu))
    }

    pub(crate) fn smoothed_rtt(&self) -> Span {
        self.sender.rtt().srtt()
    }

    pub(crate) fn on_sent(&mut self, now: Instant, bytes: u64, number: Option<u64>, controller: &mut ControllerHandle) {
        self.finish(controller);
        if self.sent_at.is_some_and(|sent_at| sent_at != now) {
            self.validate_cwnd(controller);
        }
        let is_idle = self.packets.is_empty();
        // During a recovery, what is sent first is what was lost.
        let is_again = self.sender.ca_state() >= CaState::Recovery;
        self.sender.before_send(now, u32::from(!is_idle), is_again, controller);
        let segments = self.segments.count(bytes as u32, self.mtu.into());
        let snapshot = self.sender.on_sent(now, !is_idle, self.packets.segments() + segments, segments);
        self.packets.push(SentPacket { seq: self.packets.next(), number, sent: now, bytes, segments, snapshot });
        (self.latest, self.sent_at) = (now, Some(now));
    }

    /// Validates the window once all packets of an instant are sent.
    fn validate_cwnd(&mut self, controller: &mut ControllerHandle) {
        let Some(sent_at) = self.sent_at.take() else { return };
        let limit = match (self.has_room(), self.is_app_limited) {
            (false, _) => Some(SendLimit::CongestionWindow),
            (true, true) => None,
            // The stack's pacer, or flow control.
            (true, false) => Some(SendLimit::HostQueue),
        };
        self.sender.validate_cwnd(sent_at, &self.packets.outstanding(), limit, controller);
    }

    /// Whether the window has room for another full packet. Stacks compare bytes.
    fn has_room(&self) -> bool {
        self.packets.bytes() + u64::from(self.mtu) <= self.window()
    }

    pub(crate) fn set_app_limited(&mut self, is_app_limited: bool) {
        self.is_app_limited = is_app_limited;
    }

    /// The report of `now`: the open one, or a new one.
    fn report(&mut self, now: Instant, controller: &mut ControllerHandle) -> (&mut Report, &mut PathSender) {
        if self.report.as_ref().is_some_and(|report| report.now != now) {
            self.finish(controller);
        }
        if self.report.is_none() {
            self.validate_cwnd(controller);
            let in_flight = self.packets.segments();
            if self.is_app_limited && self.has_room() {
                self.sender.mark_app_limited(in_flight);
            }
            self.latest = now;
        }
        let (sender, packets) = (&mut self.sender, &self.packets);
        let report = self
            .report
            .get_or_insert_with(|| Report::new(now, sender.prior_state(packets.segments()), packets.oldest()));
        (report, sender)
    }

    pub(crate) fn on_acked(
        &mut self,
        now: Instant,
        sent: Instant,
        number: Option<u64>,
        controller: &mut ControllerHandle,
    ) {
        if self.report.as_ref().is_some_and(|report| report.has_all_acks) {
            self.finish(controller);
        }
        self.report(now, controller);
        let Some(packet) = self.packets.take_sent(sent, number) else { return };
        let (report, sender) = self.report(now, controller);
        report.add_acked(&packet, sender);
    }

    pub(crate) fn on_acks_end(&mut self, bytes_in_flight: u64) {
        self.packets.forget_beyond(bytes_in_flight);
        if let Some(report) = &mut self.report {
            report.has_all_acks = true;
        }
    }

    pub(crate) fn on_lost(&mut self, now: Instant, number: u64, controller: &mut ControllerHandle) {
        self.report(now, controller);
        if let Some(packet) = self.packets.take_numbered(number) {
            let (report, sender) = self.report(now, controller);
            report.add_lost(&packet, sender);
        }
    }

    pub(crate) fn on_lost_bytes(
        &mut self,
        now: Instant,
        newest: Instant,
        bytes: u64,
        controller: &mut ControllerHandle,
    ) {
        self.report(now, controller);
        let mut rest = bytes;
        // All packets that were sent before a lost one, and are still in flight, are lost too.
        while rest > 0
            && let Some(packet) = self.packets.take_oldest(newest)
        {
            rest = rest.saturating_sub(packet.bytes);
            let (report, sender) = self.report(now, controller);
            report.add_lost(&packet, sender);
        }
    }

    pub(crate) fn on_persistent_congestion(&mut self, now: Instant, controller: &mut ControllerHandle) {
        self.report(now, controller).0.is_persistent = true;
    }

    pub(crate) fn on_ce(&mut self, now: Instant, packets: u32, controller: &mut ControllerHandle) {
        self.report(now, controller).0.acked.marked += packets;
    }

    pub(crate) fn on_spurious_loss(&mut self, controller: &mut ControllerHandle) {
        self.finish(controller);
        self.is_spurious = true;
    }

    pub(crate) fn set_mtu(&mut self, mtu: u16, controller: &mut ControllerHandle) {
        if self.report.is_some() {
            self.next_mtu = Some(mtu);
        } else if mtu != self.mtu {
            self.mtu = mtu;
            self.sender.notify(self.latest, &PathEvent::MssChanged { mss: mtu.into() }, controller);
        }
    }

    /// Ends the report that is open: the controller gets it, in the order of a machine of Ropewalk's own.
    pub(crate) fn finish(&mut self, controller: &mut ControllerHandle) {
        if self.is_spurious {
            // The acknowledgement may have acknowledged nothing else.
            self.report(self.latest, controller);
        }
        let Some(mut report) = self.report.take() else { return };
        self.sample_rtt(&mut report);
        self.notify(&mut report, controller);
        if let Some(mtu) = self.next_mtu.take() {
            self.set_mtu(mtu, controller);
        }
    }

    /// Samples the RTT if the newest packet of all is acknowledged now (RFC 9002, section 5.1). It contains the peer's delay,
    /// which stacks do not tell.
    fn sample_rtt(&mut self, report: &mut Report) {
        let Some((seq, sent)) = report.newest_acked.filter(|(seq, _)| self.newest_acked < Some(*seq)) else { return };
        self.newest_acked = Some(seq);
        let rtt = Span(report.now.since(sent).0.max(1));
        self.sender.update_min_rtt(report.now, rtt);
        self.sender.update_rtt(rtt, report.prior_oldest, self.packets.next());
        report.acked.rtt = Some(rtt);
    }

    /// Notifies the controller: progress, the undo or the end of a reduction, congestion, persistent congestion, the sample.
    fn notify(&mut self, report: &mut Report, controller: &mut ControllerHandle) {
        let (now, outstanding) = (report.now, self.packets.outstanding());
        report.acked.pkts_acked = self.sender.delivered_since(&report.prior);
        report.acked.advanced = outstanding.snd_una > report.prior_oldest;
        if report.lost_packets > 0 || report.acked.marked > 0 || self.sender.ca_state() != CaState::Open {
            self.sender.report_progress(now, &report.prior, &report.acked, &outstanding, controller);
        }
        self.end_reduction(report, controller);
        self.begin_reduction(report, controller);
        let acked = &mut report.acked;
        acked.may_raise_cwnd = acked.pkts_acked > 0;
        self.sender.finish_ack(now, &report.prior, acked, &outstanding, controller);
        if self.sender.is_asked_to_reduce(controller) {
            self.reduce(report, Cause::Requested, CaState::Cwr, controller);
        }
    }

    fn end_reduction(&mut self, report: &Report, controller: &mut ControllerHandle) {
        if report.acked.marked > 0 {
            // A mark is congestion, also where the losses next to it were none.
            self.undo_from = None;
        }
        if std::mem::take(&mut self.is_spurious)
            && let Some(first) = self.undo_from.take()
        {
            self.reduced_at = first;
            self.sender.undo_reduction(report.now, first, controller);
        }
        // RFC 9002, section 7.3.2: until a packet that was sent in the reduction is acknowledged.
        if report.acknowledges(self.sender.high_seq()) {
            match self.sender.ca_state() {
                CaState::Cwr | CaState::Recovery => self.sender.leave_reduction(report.now, true, controller),
                CaState::Loss => self.sender.leave_loss(),
                CaState::Open | CaState::Disorder => {}
            }
        }
    }

    fn begin_reduction(&mut self, report: &Report, controller: &mut ControllerHandle) {
        let (now, high_seq) = (report.now, self.sender.high_seq());
        // RFC 9002, appendix B.6: no reaction to packets that were sent before the latest reduction.
        let is_new_loss = report.newest_lost.is_some_and(|newest| newest >= high_seq);
        if is_new_loss {
            self.reduce(report, Cause::Loss, CaState::Recovery, controller);
        } else if report.acked.marked > 0 && report.acknowledges(high_seq) {
            self.reduce(report, Cause::EcnMark, CaState::Cwr, controller);
        }
        if report.is_persistent {
            self.sender.enter_loss(now, !is_new_loss, &self.packets.outstanding(), controller);
            (self.undo_from, self.reduced_at) = (None, self.sender.high_seq());
        }
    }

    fn reduce(&mut self, report: &Report, cause: Cause, state: CaState, controller: &mut ControllerHandle) {
        let by_timer = self.sender.delivered_since(&report.prior) == 0;
        let is_marked = report.acked.marked > 0;
        self.sender.enter_reduction(report.now, cause, by_timer, state, &self.packets.outstanding(), controller);
        self.undo_from = (cause == Cause::Loss && !is_marked).then_some(self.reduced_at);
        self.reduced_at = self.sender.high_seq();
    }

    /// The path is gone.
    pub(crate) fn end(&mut self, controller: &mut ControllerHandle) {
        self.finish(controller);
        self.sender.notify(self.latest, &PathEvent::PathDown, controller);
    }
}
