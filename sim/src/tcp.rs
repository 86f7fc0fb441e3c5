//! Both ends of a TCP or MPTCP flow: its connection, what runs on top of it, and what was counted.

use crate::application::{Application, Ask, Client, Message, Video};
use crate::connection::Connection;
use crate::distribution::Distribution;
use crate::multipath::DATA_ACK;
use crate::peak::Peak;
use crate::setup::Setup;
use control::Ecn;
use scenario::model::{Requests, Route};
use transport::mptcp;
use transport::tcp::sender::Counters;
use transport::tcp::{Ack, Input, Kind, Segment};
use units::Instant;

/// Both ends of a TCP or MPTCP flow: of its connection, or of its present one.
#[derive(Debug)]
pub(crate) struct Tcp {
    setup: Setup,
    pub connection: Connection,
    /// Number of the present connection; packets of earlier ones find nobody.
    pub number: u16,
    application: Application,
    /// What is being sent, and the segment after its end.
    message: Message,
    end: u64,
    /// Bytes delivered of earlier messages.
    delivered_before: u64,
    /// Counters of earlier connections.
    past: Vec<Counters>,
    pub rtt: Distribution,
    /// Bytes of data packets that reached the receiving host, headers included.
    pub arrived_bytes: u64,
    pub peak: Peak,
    pub done: Option<Instant>,
    pub stopped: bool,
}

impl Tcp {
    pub(crate) fn new(setup: Setup, application: Application, size: Option<u64>) -> Self {
        let connection = setup.connection(0);
        let message = match application {
            Application::Requests(_) => Message::new(0, Some(0), setup.mss()),
            _ => Message::new(0, size, setup.mss()),
        };
        Self {
            setup,
            connection,
            number: 0,
            application,
            message,
            end: message.end(),
            delivered_before: 0,
            past: Vec::new(),
            rtt: Distribution::default(),
            arrived_bytes: 0,
            peak: Peak::default(),
            done: None,
            stopped: false,
        }
    }

    /// Payload of a full segment, bytes.
    pub(crate) fn mss(&self) -> u32 {
        self.setup.mss()
    }

    /// Name of the congestion control.
    pub(crate) fn congestion(&self) -> &'static str {
        self.setup.entry.name
    }

    /// Its application always has data.
    pub(crate) fn is_greedy(&self) -> bool {
        matches!(self.application, Application::Greedy)
    }

    /// What its client has counted, if it has one.
    pub(crate) fn client(&self) -> Option<&Client> {
        match &self.application {
            Application::Requests(client) => Some(client),
            _ => None,
        }
    }

    /// Its video, if it has one.
    pub(crate) fn video(&self) -> Option<&Video> {
        match &self.application {
            Application::Video(video) => Some(video),
            _ => None,
        }
    }

    /// The flow begins: it connects, unless its client has to ask first.
    pub(crate) fn start(&mut self, now: Instant) {
        match self.application {
            Application::Greedy => self.write(now, self.message.segments(), self.message.has_runt()),
            Application::Steady(_) | Application::Video(_) => {}
            Application::Requests(_) => return,
        }
        self.connection.connect(now);
    }

    /// The flow's source ends.
    pub(crate) fn stop(&mut self, now: Instant) {
        self.stopped = true;
        self.connection.stop(now);
        self.application.leave(now);
    }

    /// The run ends.
    pub(crate) fn finish(&mut self, now: Instant) {
        self.peak.close(now, self.delivered_bytes());
        self.application.leave(now);
    }

    /// The source's clock: the application writes what is due, and timers run out.
    pub(crate) fn wake_source(&mut self, now: Instant) {
        if !self.stopped
            && let Some((segments, runt)) = self.application.write(now, &self.message)
        {
            self.write(now, segments, runt);
        }
        self.connection.wake(now);
    }

    /// When the application writes next.
    pub(crate) fn next_write(&self) -> Instant {
        if self.stopped { Instant::NEVER } else { self.application.due(&self.message) }
    }

    /// When the receiver's host must act, if nothing arrives.
    #[inline]
    pub(crate) fn sink_deadline(&self) -> Instant {
        match &self.application {
            Application::Requests(client) => self.connection.receiver_deadline().min(client.deadline()),
            _ => self.connection.receiver_deadline(),
        }
    }

    fn write(&mut self, now: Instant, segments: u64, runt: bool) {
        self.connection.write(now, segments, runt);
    }

    /// The request that the client sends now.
    pub(crate) fn ask(&mut self, now: Instant) -> Option<u32> {
        let Application::Requests(client) = &mut self.application else { return None };
        let ask = client.wake(now)?;
        let number = client.number();
        if ask == Ask::New {
            let (size, reconnects) = (client.draw_size(), client.reconnects());
            self.expect(now, size, reconnects);
        }
        Some(number)
    }

    /// An answer of `size` bytes is to come.
    fn expect(&mut self, now: Instant, size: u64, reconnects: bool) {
        self.delivered_before += self.message.bytes.unwrap_or(0);
        let mut first = self.end;
        if reconnects {
            self.past.extend(self.connection.senders().map(|sender| *sender.counters()));
            self.number = self.number.wrapping_add(1);
            self.connection = self.setup.connection(self.number);
            first = 0;
        }
        self.message = Message::new(first, Some(size), self.setup.mss());
        self.end = self.message.end();
        if let Application::Requests(client) = &mut self.application {
            let Connection::Single(single) = &mut self.connection else { unreachable!("refused by the reader") };
            client.carry((first > 0).then(|| single.receiver.piggyback(now)));
        }
    }

    /// A request reaches the server.
    pub(crate) fn serve(&mut self, now: Instant, number: u32) {
        let Application::Requests(client) = &mut self.application else { return };
        let Some(carried) = client.serve(number) else { return };
        if let Some(ack) = carried {
            self.on_ack(now, &ack);
        }
        if !self.stopped {
            self.connection.connect(now);
            self.write(now, self.message.segments(), self.message.has_runt());
        }
    }

    /// Packets of this connection, or subflow, are this flow's.
    #[inline]
    pub(crate) fn knows(&self, connection: u16) -> bool {
        connection == self.number || matches!(self.connection, Connection::Multi(_))
    }

    /// An acknowledgement reaches the sender.
    pub(crate) fn on_ack(&mut self, now: Instant, ack: &Ack) {
        let Connection::Single(single) = &mut self.connection else { return };
        single.sender.handle(now, Input::Ack(ack));
        if let Some(rtt) = single.sender.last_rtt() {
            self.rtt.add(rtt);
        }
    }

    /// An acknowledgement reaches the sender of a subflow.
    pub(crate) fn on_data_ack(&mut self, now: Instant, ack: &mptcp::Ack) {
        let Connection::Multi(multi) = &mut self.connection else { return };
        multi.sender.handle(now, mptcp::Input::Ack(ack));
        if let Some(rtt) = multi.note_ack(ack) {
            self.rtt.add(rtt);
        }
    }

    /// A segment reaches the receiver. Returns the acknowledgement that leaves at once, or one with what a player asks.
    pub(crate) fn on_segment(&mut self, now: Instant, segment: &Segment, marked: bool) -> Option<Ack> {
        self.note_time(now);
        if segment.kind == Kind::Data {
            self.arrived_bytes += u64::from(self.segment_bytes(segment).0);
        }
        let Connection::Single(single) = &mut self.connection else { return None };
        let ack = single.receiver.handle(now, segment, marked);
        if let Application::Requests(client) = &mut self.application {
            client.hear(now, segment, self.message.first);
        }
        if self.note_delivery(now) && ack.is_none() {
            let Connection::Single(single) = &mut self.connection else { return None };
            return Some(single.receiver.piggyback(now));
        }
        ack
    }

    /// The same on a subflow.
    pub(crate) fn on_data_segment(
        &mut self,
        now: Instant,
        segment: &mptcp::Segment,
        marked: bool,
    ) -> Option<mptcp::Ack> {
        self.note_time(now);
        let (bytes, _) = self.data_segment_bytes(segment);
        let Connection::Multi(multi) = &mut self.connection else { return None };
        let ack = multi.on_segment(now, segment, bytes, marked);
        if segment.tcp.kind == Kind::Data {
            self.arrived_bytes += u64::from(bytes);
        }
        if self.note_delivery(now) && ack.is_none() {
            let Connection::Multi(multi) = &mut self.connection else { return None };
            return Some(multi.receiver.piggyback(now, segment.subflow));
        }
        ack
    }

    /// Something has arrived: what was delivered before counts for the half second that may be over.
    #[inline]
    fn note_time(&mut self, now: Instant) {
        if self.peak.is_due(now) {
            self.peak.close(now, self.delivered_bytes());
        }
    }

    /// Something may have been delivered in order. Returns whether a player asks for more now.
    #[inline]
    fn note_delivery(&mut self, now: Instant) -> bool {
        let delivered = self.connection.delivered();
        if let Application::Video(video) = &mut self.application {
            return video.deliver(now, delivered);
        }
        if delivered >= self.end {
            if let Application::Requests(client) = &mut self.application {
                client.finish(now);
            } else if self.done.is_none() {
                self.done = Some(now);
            }
        }
        false
    }

    /// Size of a segment's packet, and whether it is ECN-capable: data sent for the first time (RFC 3168 section 6.1), or
    /// every packet.
    pub(crate) fn segment_bytes(&self, segment: &Segment) -> (u32, bool) {
        self.sized(segment, segment.seq)
    }

    /// The same of a subflow's segment.
    pub(crate) fn data_segment_bytes(&self, segment: &mptcp::Segment) -> (u32, bool) {
        let (bytes, capable) = self.sized(&segment.tcp, segment.data);
        match &self.connection {
            Connection::Multi(multi) => (bytes + multi.option_bytes(segment), capable),
            Connection::Single(_) => (bytes, capable),
        }
    }

    #[inline]
    fn sized(&self, segment: &Segment, data: u64) -> (u32, bool) {
        let Setup { headers, ecn, .. } = self.setup;
        match segment.kind {
            Kind::Data => {
                let capable = self.marks_all() || ecn.is_some() && !segment.retransmission;
                (headers + self.application.payload(&self.message, data), capable)
            }
            Kind::Syn | Kind::HandshakeAck => (headers, self.marks_all()),
        }
    }

    /// Size of a request's packet.
    pub(crate) fn request_bytes(&self) -> u32 {
        self.setup.headers + Requests::ASK
    }

    /// Where the packets of a subflow go.
    pub(crate) fn route_of(&self, subflow: u16) -> Route {
        match &self.connection {
            Connection::Multi(multi) => Route::Path(multi.subflows[usize::from(subflow)].path),
            Connection::Single(_) => unreachable!("it has no subflows"),
        }
    }

    /// Packets without new data are ECN-capable, too.
    pub(crate) fn marks_all(&self) -> bool {
        self.setup.ecn == Some(Ecn::PerPacket)
    }

    /// Size of an acknowledgement's packet. The SACK option: two bytes, eight a block, padded to four (RFC 2018
    /// section 3).
    pub(crate) fn ack_bytes(&self, ack: &Ack) -> u32 {
        match ack.blocks.len() as u32 {
            0 => self.setup.headers,
            blocks => self.setup.headers + 4 + 8 * blocks,
        }
    }

    /// The same of a subflow's.
    pub(crate) fn data_ack_bytes(&self, ack: &mptcp::Ack) -> u32 {
        self.ack_bytes(&ack.tcp) + DATA_ACK
    }

    /// Bytes that reached the application.
    pub(crate) fn delivered_bytes(&self) -> u64 {
        self.delivered_before + self.application.bytes_below(&self.message, self.connection.delivered())
    }

    /// A counter, over all connections.
    pub(crate) fn total<T: std::iter::Sum>(&self, counter: impl Fn(&Counters) -> T) -> T {
        self.past.iter().map(&counter).chain([self.connection.total(&counter)]).sum()
    }
}
