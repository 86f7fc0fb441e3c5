//! Both ends of a TCP flow: the core's machines, what runs on top of them, and what was counted.

use crate::application::{Application, Ask, Client, Message, REQUEST, Video};
use crate::distribution::Distribution;
use crate::peak::Peak;
use crate::setup::Setup;
use control::Ecn;
use protocol::tcp::sender::{Counters, Input};
use protocol::tcp::{Ack, Kind, Receiver, Segment, Sender};
use units::Instant;

/// Both ends of a TCP flow: of its connection, or of its present one.
#[derive(Debug)]
pub(crate) struct Tcp {
    setup: Setup,
    pub sender: Sender,
    pub receiver: Receiver,
    /// Number of the present connection; packets of earlier ones find nobody.
    pub connection: u16,
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
        let (sender, receiver) = setup.connection(0);
        let message = match application {
            Application::Requests(_) => Message::new(0, Some(0), setup.mss()),
            _ => Message::new(0, size, setup.mss()),
        };
        Self {
            setup,
            sender,
            receiver,
            connection: 0,
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
        self.sender.handle(now, Input::Connect);
    }

    /// The flow's source ends.
    pub(crate) fn stop(&mut self, now: Instant) {
        self.stopped = true;
        self.sender.handle(now, Input::Stop);
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
        self.sender.handle(now, Input::Timeout);
    }

    /// When the application writes next.
    pub(crate) fn next_write(&self) -> Instant {
        if self.stopped { Instant::NEVER } else { self.application.due(&self.message) }
    }

    /// When the receiver's host must act, if nothing arrives.
    pub(crate) fn sink_deadline(&self) -> Instant {
        match &self.application {
            Application::Requests(client) => self.receiver.deadline().min(client.deadline()),
            _ => self.receiver.deadline(),
        }
    }

    fn write(&mut self, now: Instant, segments: u64, runt: bool) {
        self.sender.handle(now, Input::Write { segments, runt });
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
            self.past.push(*self.sender.counters());
            self.connection = self.connection.wrapping_add(1);
            (self.sender, self.receiver) = self.setup.connection(self.connection);
            first = 0;
        }
        self.message = Message::new(first, Some(size), self.setup.mss());
        self.end = self.message.end();
        if let Application::Requests(client) = &mut self.application {
            client.carry((first > 0).then(|| self.receiver.piggyback(now)));
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
            self.sender.handle(now, Input::Connect);
            self.write(now, self.message.segments(), self.message.has_runt());
        }
    }

    pub(crate) fn on_ack(&mut self, now: Instant, ack: &Ack) {
        self.sender.handle(now, Input::Ack(ack));
        if let Some(rtt) = self.sender.last_rtt() {
            self.rtt.add(rtt);
        }
    }

    /// A segment reaches the receiver. Returns the acknowledgement that leaves at once.
    pub(crate) fn on_segment(&mut self, now: Instant, segment: &Segment, marked: bool) -> Option<Ack> {
        if self.peak.is_due(now) {
            self.peak.close(now, self.delivered_bytes());
        }
        if segment.kind == Kind::Data {
            self.arrived_bytes += u64::from(self.segment_bytes(segment).0);
        }
        let ack = self.receiver.handle(now, segment, marked);
        if let Application::Requests(client) = &mut self.application {
            client.hear(now, segment, self.message.first);
            if self.receiver.delivered() >= self.end {
                client.finish(now);
            }
        } else if let Application::Video(video) = &mut self.application {
            let asks = video.deliver(now, self.receiver.delivered());
            return ack.or_else(|| asks.then(|| self.receiver.piggyback(now)));
        } else if self.done.is_none() && self.receiver.delivered() >= self.end {
            self.done = Some(now);
        }
        ack
    }

    /// Size of a segment's packet, and whether it is ECN-capable: data sent for the first time (RFC 3168 section 6.1), or
    /// every packet.
    pub(crate) fn segment_bytes(&self, segment: &Segment) -> (u32, bool) {
        let Setup { headers, ecn, .. } = self.setup;
        match segment.kind {
            Kind::Data => {
                let capable = self.marks_all() || ecn.is_some() && !segment.retransmission;
                (headers + self.application.payload(&self.message, segment.seq), capable)
            }
            Kind::Syn | Kind::HandshakeAck => (headers, self.marks_all()),
        }
    }

    /// Packets without new data are ECN-capable, too.
    pub(crate) fn marks_all(&self) -> bool {
        self.setup.ecn == Some(Ecn::PerPacket)
    }

    /// Size of an acknowledgement's packet. The SACK option: two bytes, eight a block, padded to four (RFC 2018
    /// section 3).
    pub(crate) fn ack_bytes(&self, ack: &Ack) -> u32 {
        match ack.blocks.as_slice().len() as u32 {
            0 => self.setup.headers,
            blocks => self.setup.headers + 4 + 8 * blocks,
        }
    }

    /// Size of a request's packet.
    pub(crate) fn request_bytes(&self) -> u32 {
        self.setup.headers + REQUEST
    }

    /// Bytes that reached the application.
    pub(crate) fn delivered_bytes(&self) -> u64 {
        self.delivered_before + self.application.bytes_below(&self.message, self.receiver.delivered())
    }

    /// A counter, over all connections.
    pub(crate) fn total<T: std::iter::Sum>(&self, counter: impl Fn(&Counters) -> T) -> T {
        self.past.iter().chain([self.sender.counters()]).map(counter).sum()
    }
}
