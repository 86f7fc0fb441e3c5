//! Both ends of a flow of TCP, MPTCP or multipath QUIC: its connection, its application and its counters.

use crate::application::{Application, Client, Message, Piggyback, RequestKind, Video};
use crate::connection::{Connection, SenderOutput};
use crate::daemon::Sleeper;
use crate::limits::FlowLimits;
use crate::mptcp::DATA_ACK_OPTION;
use crate::peak::PeakGoodput;
use crate::tcp_config::TcpConfig;
use control::Ecn;
use link::EcnField;
use record::Distribution;
use scenario::model::{Requests, Route};
use transport::tcp::sender::SenderCounters;
use transport::tcp::{Ack, Input, Receiver, Segment, SegmentKind};
use transport::{mptcp, quic};
use units::{Instant, Span};

/// Both ends of a flow of TCP, MPTCP or multipath QUIC, which has one connection, or several in sequence.
#[derive(Debug)]
pub(crate) struct TcpFlow {
    pub config: TcpConfig,
    pub connection: Connection,
    /// An output of the sender that was polled and is not yet sent.
    pub polled: Option<SenderOutput>,
    /// Number of the current connection; packets of earlier ones are ignored.
    pub connection_number: u16,
    application: Application,
    /// The message being sent.
    message: Message,
    /// Number of the segment after the end of the message.
    end: u64,
    /// Bytes delivered of earlier messages.
    delivered_before: u64,
    /// Counters of earlier connections.
    closed: Vec<SenderCounters>,
    pub limits: FlowLimits,
    /// Why the controllers of earlier connections failed.
    controller_failures: Vec<String>,
    pub rtt: Distribution,
    /// Subflow and value of the latest sample, until it is traced.
    pub latest_rtt: Option<(u16, Span)>,
    /// Bytes of data packets that reached the receiving host, headers included.
    pub arrived_bytes: u64,
    pub peak: PeakGoodput,
    /// Completion time of a flow of limited size.
    pub completed: Option<Instant>,
    pub stopped: bool,
    /// The receiving program, if it does not read at once.
    pub reader: Option<Box<Sleeper>>,
}

impl TcpFlow {
    pub(crate) fn new(config: TcpConfig, application: Application, size: Option<u64>) -> Self {
        let connection = config.connection(0);
        let message = match application {
            Application::Requests(_) => Message::new(0, Some(0), config.mss()),
            _ => Message::new(0, size, config.mss()),
        };
        Self {
            config,
            connection,
            polled: None,
            connection_number: 0,
            application,
            message,
            end: message.end(),
            delivered_before: 0,
            closed: Vec::new(),
            limits: FlowLimits::default(),
            controller_failures: Vec::new(),
            rtt: Distribution::default(),
            latest_rtt: None,
            arrived_bytes: 0,
            peak: PeakGoodput::default(),
            completed: None,
            stopped: false,
            reader: None,
        }
    }

    /// Payload of a full segment, bytes.
    pub(crate) fn mss(&self) -> u32 {
        self.config.mss()
    }

    /// Number of the segment after the end of the message.
    pub(crate) fn end(&self) -> u64 {
        self.end
    }

    /// Why the controllers of this and of earlier connections failed.
    pub(crate) fn controller_failures(&mut self) -> Vec<String> {
        let failure = self.connection.controller_mut().and_then(|controller| controller.failure());
        let failures = std::mem::take(&mut self.controller_failures);
        failures.into_iter().chain(failure.map(str::to_owned)).collect()
    }

    /// Name of the congestion control algorithm.
    pub(crate) fn congestion(&self) -> &'static str {
        self.config.entry.name
    }

    /// Whether its application always has data.
    pub(crate) fn is_greedy(&self) -> bool {
        matches!(self.application, Application::Greedy)
    }

    /// The client of a flow of requests.
    pub(crate) fn client(&self) -> Option<&Client> {
        match &self.application {
            Application::Requests(client) => Some(client),
            _ => None,
        }
    }

    /// The video of a flow of video.
    pub(crate) fn video(&self) -> Option<&Video> {
        match &self.application {
            Application::Video(video) => Some(video),
            _ => None,
        }
    }

    /// Starts the flow: the sender connects, unless a client's request has to come first.
    pub(crate) fn start(&mut self, now: Instant) {
        match self.application {
            Application::Greedy => self.write(now, self.message.segments(), self.message.lacking()),
            Application::Steady(_) | Application::Video(_) | Application::Relayed => {}
            Application::Requests(_) => return,
        }
        self.connection.connect(now);
    }

    /// Stops the flow's source.
    pub(crate) fn stop(&mut self, now: Instant) {
        self.stopped = true;
        self.limits.finish(&self.connection, now);
        self.connection.stop(now);
        self.application.stop(now);
    }

    /// Closes the counters at the end of the run.
    pub(crate) fn finish(&mut self, now: Instant) {
        self.peak.close(now, self.delivered_bytes());
        self.limits.finish(&self.connection, now);
        self.application.stop(now);
    }

    /// Handles a timer of the source: writes the data that is due, and lets the sender's timers expire.
    pub(crate) fn wake_source(&mut self, now: Instant) {
        if !self.stopped
            && let Some((segments, lacking)) = self.application.write(now, &self.message)
        {
            self.write(now, segments, lacking);
        }
        self.connection.wake(now);
    }

    /// The time of the application's next write.
    pub(crate) fn next_write(&self) -> Instant {
        if self.stopped { Instant::NEVER } else { self.application.due(&self.message) }
    }

    /// The expiry of the receiving host's next timer.
    #[inline]
    pub(crate) fn sink_deadline(&self) -> Instant {
        match &self.application {
            Application::Requests(client) => self.connection.receiver_deadline().min(client.deadline()),
            _ => self.connection.receiver_deadline(),
        }
    }

    fn write(&mut self, now: Instant, segments: u64, lacking: u32) {
        self.connection.write(now, segments, lacking);
    }

    /// Number of the request that the client sends now, if one is due.
    pub(crate) fn next_request(&mut self, now: Instant) -> Option<u32> {
        let Application::Requests(client) = &mut self.application else { return None };
        let kind = client.wake(now)?;
        let request_number = client.request_number();
        if kind == RequestKind::New {
            let (size, reconnects) = (client.draw_size(), client.reconnects());
            self.prepare_response(now, size, reconnects);
        }
        Some(request_number)
    }

    /// The subflow on which the client's current request is sent.
    pub(crate) fn request_subflow(&self) -> Option<u16> {
        match &self.connection {
            Connection::Single(_) | Connection::Quic(_) => None,
            Connection::Multi(multi) => Some(multi.request_subflow(self.client().map_or(0, Client::retransmissions))),
        }
    }

    /// Prepares for a response of `size` bytes, on a new connection if the client reconnects.
    fn prepare_response(&mut self, now: Instant, size: u64, reconnects: bool) {
        self.delivered_before += self.message.bytes.unwrap_or(0);
        let mut first_segment = self.end;
        if reconnects {
            self.closed.extend(self.connection.senders().map(|sender| sender.counters));
            self.limits.close(&self.connection, now);
            self.controller_failures = self.controller_failures();
            self.connection_number = self.connection_number.wrapping_add(1);
            self.connection = self.config.connection(self.connection_number);
            first_segment = 0;
        }
        self.message = Message::new(first_segment, Some(size), self.config.mss());
        self.end = self.message.end();
        if let Application::Requests(client) = &mut self.application {
            client.piggyback((first_segment > 0).then(|| match &mut self.connection {
                Connection::Single(single) => Piggyback::Tcp(single.receiver.piggyback(now)),
                Connection::Multi(multi) => {
                    let subflow = multi.request_subflow(client.retransmissions());
                    Piggyback::Mptcp(multi.receiver.piggyback(now, subflow))
                }
                Connection::Quic(_) => unreachable!("the scenario reader refuses requests over QUIC"),
            }));
        }
    }

    /// Called when the application of a receiver that does not read at once has read the first `bytes`. Returns the window
    /// update that is to be sent at once, if any.
    pub(crate) fn read(&mut self, now: Instant, bytes: u64) -> Option<Ack> {
        let Connection::Single(single) = &mut self.connection else { return None };
        let delivered = single.receiver.delivered();
        let is_all = bytes >= self.application.bytes_below(&self.message, delivered);
        single.receiver.read(now, if is_all { delivered } else { bytes / u64::from(self.config.mss()) })
    }

    /// Bytes of the flow that precede a segment.
    pub(crate) fn bytes_below(&self, segment: u64) -> u64 {
        self.application.bytes_below(&self.message, segment)
    }

    /// Called when a request reaches the server.
    pub(crate) fn on_request(&mut self, now: Instant, request_number: u32) {
        let Application::Requests(client) = &mut self.application else { return };
        let Some(piggybacked) = client.serve(request_number) else { return };
        match piggybacked {
            Some(Piggyback::Tcp(ack)) => self.on_ack(now, &ack),
            Some(Piggyback::Mptcp(ack)) => self.on_mptcp_ack(now, &ack),
            None => {}
        }
        if !self.stopped {
            self.connection.connect(now);
            self.write(now, self.message.segments(), self.message.lacking());
        }
    }

    /// Whether packets of this connection or subflow are to be delivered.
    #[inline]
    pub(crate) fn accepts(&self, connection: u16) -> bool {
        connection == self.connection_number || !matches!(self.connection, Connection::Single(_))
    }

    /// Adds a subflow's RTT sample, if there is one.
    fn add_rtt(&mut self, sample: Option<(u16, Span)>) {
        if let Some((_, rtt)) = sample {
            self.rtt.add(rtt);
            self.latest_rtt = sample;
        }
    }

    /// Called when an acknowledgement reaches the sender.
    pub(crate) fn on_ack(&mut self, now: Instant, ack: &Ack) {
        let Connection::Single(single) = &mut self.connection else { return };
        single.sender.handle(now, Input::Ack(ack));
        let sample = single.sender.last_rtt();
        self.add_rtt(sample.map(|rtt| (0, rtt)));
    }

    /// Called when an acknowledgement reaches the sender of a subflow.
    pub(crate) fn on_mptcp_ack(&mut self, now: Instant, ack: &mptcp::Ack) {
        let Connection::Multi(multi) = &mut self.connection else { return };
        multi.sender.handle(now, mptcp::Input::Ack(ack));
        let sample = multi.measure_ack(ack);
        self.add_rtt(sample.map(|rtt| (ack.subflow, rtt)));
    }

    /// Called when a segment reaches the receiver. Returns the acknowledgement to be sent at once: the receiver's, or one
    /// that carries a video player's request.
    pub(crate) fn on_segment(&mut self, now: Instant, segment: &Segment, marked: bool) -> Option<Ack> {
        let bytes = if segment.kind == SegmentKind::Data { self.segment_bytes(segment).0 } else { 0 };
        self.on_data(now, segment, bytes, |receiver| receiver.handle(now, segment, marked))
    }

    /// As [`on_segment`](Self::on_segment), for data in `bytes` that ends with segment `last` and that the receiver is to
    /// `handle`.
    #[inline]
    pub(crate) fn on_data(
        &mut self,
        now: Instant,
        last: &Segment,
        bytes: u32,
        handle: impl FnOnce(&mut Receiver) -> Option<Ack>,
    ) -> Option<Ack> {
        self.close_peak_window(now);
        self.arrived_bytes += u64::from(bytes);
        let Connection::Single(single) = &mut self.connection else { return None };
        if let Some(reader) = &mut self.reader {
            single.receiver.set_next_read(reader.wake(now));
        }
        let ack = handle(&mut single.receiver);
        if let Application::Requests(client) = &mut self.application {
            client.on_segment(now, last.kind, last.seq, self.message.first);
        }
        if self.on_delivery(now) && ack.is_none() {
            let Connection::Single(single) = &mut self.connection else { return None };
            return Some(single.receiver.piggyback(now));
        }
        ack
    }

    /// Called when a segment reaches the receiver on a subflow; returns as [`on_segment`](Self::on_segment) does.
    pub(crate) fn on_mptcp_segment(
        &mut self,
        now: Instant,
        segment: &mptcp::Segment,
        marked: bool,
    ) -> Option<mptcp::Ack> {
        self.close_peak_window(now);
        let (bytes, _) = self.mptcp_segment_bytes(segment);
        let Connection::Multi(multi) = &mut self.connection else { return None };
        let ack = multi.on_segment(now, segment, bytes, marked);
        if segment.tcp.kind == SegmentKind::Data {
            self.arrived_bytes += u64::from(bytes);
        }
        if let Application::Requests(client) = &mut self.application {
            client.on_segment(now, segment.tcp.kind, segment.data_seq, self.message.first);
        }
        if self.on_delivery(now) && ack.is_none() {
            let Connection::Multi(multi) = &mut self.connection else { return None };
            return Some(multi.receiver.piggyback(now, segment.subflow));
        }
        ack
    }

    /// Called when a packet of the receiver reaches the sender of a QUIC connection.
    pub(crate) fn on_quic_reply(&mut self, now: Instant, reply: &quic::Reply) {
        let Connection::Quic(quic) = &mut self.connection else { return };
        quic.sender.handle(now, quic::Input::Reply(reply));
        let sample = quic.measure_reply(reply);
        self.add_rtt(sample);
    }

    /// Called when a packet reaches the receiver of a QUIC connection. Returns the packet to be sent at once, if any.
    pub(crate) fn on_quic_packet(&mut self, now: Instant, packet: &quic::Packet, marked: bool) -> Option<quic::Reply> {
        self.close_peak_window(now);
        let (bytes, _) = self.quic_packet_bytes(packet);
        let Connection::Quic(quic) = &mut self.connection else { return None };
        let reply = quic.on_packet(now, packet, bytes, marked);
        if packet.has_data() {
            self.arrived_bytes += u64::from(bytes);
        }
        self.on_delivery(now);
        reply
    }

    /// Closes the window of the peak goodput, if it has ended, before an arrival is counted.
    #[inline]
    fn close_peak_window(&mut self, now: Instant) {
        if self.peak.is_due(now) {
            self.peak.close(now, self.delivered_bytes());
        }
    }

    /// Reports the segments delivered in order to the application. Returns whether a video player requests more now.
    #[inline(always)]
    fn on_delivery(&mut self, now: Instant) -> bool {
        let delivered = self.connection.delivered();
        if let Application::Video(video) = &mut self.application {
            return video.deliver(now, delivered);
        }
        if delivered >= self.end {
            if let Application::Requests(client) = &mut self.application {
                client.finish(now);
            } else if self.completed.is_none() {
                self.completed = Some(now);
                self.limits.finish(&self.connection, now);
            }
        }
        false
    }

    /// Size of a segment's packet, bytes, and its ECN field: with classic ECN only new data is ECN-capable (RFC 3168
    /// sections 6.1.4 and 6.1.5).
    pub(crate) fn segment_bytes(&self, segment: &Segment) -> (u32, EcnField) {
        self.packet_size(segment, segment.seq)
    }

    /// [`segment_bytes`](Self::segment_bytes) of a subflow's segment.
    pub(crate) fn mptcp_segment_bytes(&self, segment: &mptcp::Segment) -> (u32, EcnField) {
        let (bytes, ecn) = self.packet_size(&segment.tcp, segment.data_seq);
        match &self.connection {
            Connection::Multi(multi) => (bytes + multi.option_bytes(segment), ecn),
            Connection::Single(_) | Connection::Quic(_) => (bytes, ecn),
        }
    }

    #[inline]
    fn packet_size(&self, segment: &Segment, data_seq: u64) -> (u32, EcnField) {
        let TcpConfig { header_bytes, ecn, .. } = self.config;
        match segment.kind {
            SegmentKind::Data => {
                let ecn = if ecn == Some(Ecn::Classic) && !segment.retransmission {
                    EcnField::Ect0
                } else {
                    self.control_ecn()
                };
                (header_bytes + self.payload(data_seq), ecn)
            }
            SegmentKind::Syn | SegmentKind::HandshakeAck | SegmentKind::WindowProbe => {
                (header_bytes, self.control_ecn())
            }
        }
    }

    /// Whether its device takes super-segments.
    #[inline]
    pub(crate) fn has_offload(&self) -> bool {
        self.config.has_offload()
    }

    /// Payload of a segment, bytes.
    pub(crate) fn payload(&self, segment: u64) -> u32 {
        self.application.payload(&self.message, segment)
    }

    /// Size of a request's packet, bytes.
    pub(crate) fn request_bytes(&self) -> u32 {
        self.config.header_bytes + Requests::REQUEST_BYTES
    }

    /// Size of a QUIC packet, bytes, and its ECN field: every packet is ECN-capable (RFC 9000 section 13.4.1).
    pub(crate) fn quic_packet_bytes(&self, packet: &quic::Packet) -> (u32, EcnField) {
        let chunk_bytes = match packet.content {
            quic::Content::Stream { chunk, .. } => self.application.payload(&self.message, chunk),
            _ => 0,
        };
        (packet.bytes(self.config.ip_header, chunk_bytes), self.quic_ecn())
    }

    /// Size of a QUIC packet of the receiver, bytes.
    pub(crate) fn quic_reply_bytes(&self, reply: &quic::Reply) -> u32 {
        reply.bytes(self.config.ip_header, self.config.mss())
    }

    /// The ECN field of QUIC packets, acknowledgements included.
    pub(crate) fn quic_ecn(&self) -> EcnField {
        match self.config.ecn {
            None => EcnField::NotEct,
            Some(Ecn::Classic | Ecn::PerPacket) => EcnField::Ect0,
            Some(Ecn::L4s) => EcnField::Ect1,
        }
    }

    /// The route of a subflow's packets.
    pub(crate) fn route_of(&self, subflow: u16) -> Route {
        match &self.connection {
            Connection::Multi(multi) => Route::Path(multi.stats.subflows[usize::from(subflow)].path),
            Connection::Quic(quic) => Route::Path(quic.stats.subflows[usize::from(subflow)].path),
            Connection::Single(_) => unreachable!("a single-path connection has no subflows"),
        }
    }

    /// The ECN field of packets without new data.
    pub(crate) fn control_ecn(&self) -> EcnField {
        match self.config.ecn {
            None | Some(Ecn::Classic) => EcnField::NotEct,
            Some(Ecn::PerPacket) => EcnField::Ect0,
            Some(Ecn::L4s) => EcnField::Ect1,
        }
    }

    /// Size of an acknowledgement's packet, bytes. The SACK option takes two bytes and eight a block, padded to a
    /// multiple of four (RFC 2018 section 3).
    pub(crate) fn ack_bytes(&self, ack: &Ack) -> u32 {
        match ack.sack_blocks.len() as u32 {
            0 => self.config.header_bytes,
            blocks => self.config.header_bytes + 4 + 8 * blocks,
        }
    }

    /// Size of a subflow's acknowledgement, bytes.
    pub(crate) fn mptcp_ack_bytes(&self, ack: &mptcp::Ack) -> u32 {
        self.ack_bytes(&ack.tcp) + DATA_ACK_OPTION
    }

    /// Bytes delivered to the application.
    pub(crate) fn delivered_bytes(&self) -> u64 {
        self.delivered_before + self.application.bytes_below(&self.message, self.connection.delivered())
    }

    /// The sum of a counter over all connections.
    pub(crate) fn total<T: std::iter::Sum>(&self, counter: impl Fn(&SenderCounters) -> T) -> T {
        self.closed.iter().map(&counter).chain([self.connection.total(&counter)]).sum()
    }
}
