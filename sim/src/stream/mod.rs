//! Flows of TCP, MPTCP and multipath QUIC: a sender and a receiver of numbered segments, with an application on top.
//!
//! `transport`: what a flow needs of a transport protocol; `tcp`, `mptcp` and `quic`: the protocols; `config`: their
//! configuration; `application`: the applications; `requests`: clients and servers; `socket`: what a relay does with TCP;
//! `multipath`, `limits`, `peak` and `delivery`: measurements; `protocol`: a flow as the engine sees it; `trace`: what of
//! it is traced.

mod application;
mod config;
mod delivery;
mod limits;
mod mptcp;
mod multipath;
mod peak;
mod protocol;
mod quic;
mod requests;
mod socket;
mod tcp;
mod trace;
mod transport;

pub(crate) use application::Application;
pub(crate) use config::ConfigSource;
pub(crate) use mptcp::Mptcp;
pub(crate) use quic::Quic;
pub(crate) use tcp::Tcp;

use crate::daemon::Sleeper;
use crate::network::Sent;
use crate::packet::Route;
use crate::protocol::{End, Host};
use ::transport::tcp::sender::SenderCounters;
use application::{Client, Message, Video};
use delivery::DeliveryTimes;
use limits::FlowLimits;
use link::EcnField;
use peak::PeakGoodput;
use record::Distribution;
use transport::{Command, Output, PacketOf, Receiver as _, ReplyOf, Sender as _, Transport};
use units::{Instant, Span};

/// A flow of TCP.
pub(crate) type TcpFlow = StreamFlow<Tcp>;

/// Both ends of a flow, which has one connection, or several in sequence.
#[derive(Debug)]
pub(crate) struct StreamFlow<T: Transport> {
    transport: T,
    /// The ends of the current connection.
    pub sender: T::Sender,
    pub receiver: T::Receiver,
    /// Number of the current connection; TCP ignores packets of earlier ones.
    connection_number: u16,
    application: Application,
    /// The message being sent.
    message: Message,
    /// Number of the segment after the end of the message.
    end: u64,
    /// The acknowledgement that the client's current request carries.
    piggybacked: Option<ReplyOf<T>>,
    /// Bytes delivered of earlier messages.
    delivered_before: u64,
    /// Counters of earlier connections.
    closed: Vec<SenderCounters>,
    limits: FlowLimits,
    /// Why the controllers or schedulers of earlier connections failed.
    controller_failures: Vec<String>,
    rtt: Distribution,
    /// Subflow and value of the latest sample, until it is traced.
    latest_rtt: Option<(u16, Span)>,
    /// Bytes of data packets that reached the receiving host, headers included.
    arrived_bytes: u64,
    peak: PeakGoodput,
    /// Completion time of a flow of limited size.
    completed: Option<Instant>,
    pub stopped: bool,
    /// The receiving program, if it does not read at once.
    pub reader: Option<Box<Sleeper>>,
    /// Of a relayed flow: how long its data take.
    pub delivery_times: Option<Box<DeliveryTimes>>,
}

impl<T: Transport> StreamFlow<T> {
    /// A flow of `size` bytes, or of as many as possible, with the application of a flow with this MSS.
    pub(crate) fn new(transport: T, application: impl FnOnce(u32) -> Application, size: Option<u64>) -> Self {
        let (sender, receiver) = transport.ends(0);
        let mss = transport.config().mss();
        let application = application(mss);
        let message = match application {
            Application::Requests(_) => Message::new(0, Some(0), mss),
            _ => Message::new(0, size, mss),
        };
        Self {
            transport,
            sender,
            receiver,
            connection_number: 0,
            application,
            message,
            end: message.end(),
            piggybacked: None,
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
            delivery_times: None,
        }
    }

    /// Payload of a full segment, bytes.
    pub(crate) fn mss(&self) -> u32 {
        self.transport.config().mss()
    }

    /// Number of the segment after the end of the message.
    pub(crate) fn end(&self) -> u64 {
        self.end
    }

    /// The client of a flow of requests.
    fn client(&self) -> Option<&Client> {
        match &self.application {
            Application::Requests(client) => Some(client),
            _ => None,
        }
    }

    /// The video of a flow of video.
    fn video(&self) -> Option<&Video> {
        match &self.application {
            Application::Video(video) => Some(video),
            _ => None,
        }
    }

    /// Starts the flow: the sender connects, unless a client's request has to come first.
    fn start(&mut self, now: Instant) {
        match self.application {
            Application::Greedy => self.write_message(now),
            Application::Steady(_) | Application::Video(_) | Application::Relayed => {}
            Application::Requests(_) => return,
        }
        self.sender.command(now, Command::Connect);
    }

    fn write_message(&mut self, now: Instant) {
        let command = Command::Write { segments: self.message.segments(), lacking: self.message.lacking() };
        self.sender.command(now, command);
    }

    /// Stops the flow's source.
    pub(crate) fn stop(&mut self, now: Instant) {
        self.stopped = true;
        self.limits.finish(&self.sender, now);
        self.sender.command(now, Command::Stop);
        self.application.stop(now);
    }

    /// Handles a timer of the source: writes the data that is due, and lets the sender's timers expire.
    fn wake_source(&mut self, now: Instant) {
        if !self.stopped
            && let Some((segments, lacking)) = self.application.write(now, &self.message)
        {
            self.sender.command(now, Command::Write { segments, lacking });
        }
        self.sender.command(now, Command::Timeout);
    }

    /// The time of the application's next write.
    fn next_write(&self) -> Instant {
        if self.stopped { Instant::NEVER } else { self.application.due(&self.message) }
    }

    /// The expiry of the receiving host's next timer.
    #[inline]
    fn sink_deadline(&self) -> Instant {
        match &self.application {
            Application::Requests(client) => self.receiver.deadline().min(client.deadline()),
            _ => self.receiver.deadline(),
        }
    }

    /// Called when a packet of the receiver reaches the sender.
    #[inline]
    fn on_reply(&mut self, now: Instant, reply: &ReplyOf<T>) {
        let sample = self.sender.on_reply(now, reply);
        if let Some((_, rtt)) = sample {
            self.rtt.add(rtt);
            self.latest_rtt = sample;
        }
    }

    /// What is to be sent at once when a packet has reached the receiver: its answer, or an acknowledgement that carries a
    /// video player's request.
    #[inline(always)]
    fn answer(&mut self, now: Instant, packet: &PacketOf<T>, is_marked: bool) -> Option<ReplyOf<T>> {
        let info = T::packet_info(packet);
        if self.peak.is_due(now) {
            self.peak.close(now, self.delivered_bytes());
        }
        let bytes = if info.has_data { self.packet_size(packet).0 } else { 0 };
        self.arrived_bytes += u64::from(bytes);
        if let Some(reader) = &mut self.reader {
            self.receiver.set_next_read(reader.wake(now));
        }
        let reply = self.receiver.on_packet(now, packet, bytes, is_marked);
        if let Application::Requests(client) = &mut self.application
            && let Some((kind, number)) = info.last
        {
            client.on_segment(now, kind, number, self.message.first);
        }
        if self.on_delivery(now) && reply.is_none() {
            return self.receiver.piggyback(now, info.subflow.unwrap_or(0));
        }
        reply
    }

    /// Reports the segments delivered in order to the application. Returns whether a video player requests more now.
    #[inline(always)]
    fn on_delivery(&mut self, now: Instant) -> bool {
        let delivered = self.receiver.delivered();
        if let Application::Video(video) = &mut self.application {
            return video.deliver(now, delivered);
        }
        if delivered >= self.end {
            if let Application::Requests(client) = &mut self.application {
                client.finish(now);
            } else if self.completed.is_none() {
                self.completed = Some(now);
                self.limits.finish(&self.sender, now);
            }
        }
        false
    }

    /// Schedules the receiving host's next timer and sends a packet of the receiver, if there is one.
    pub(crate) fn send_reply(&mut self, reply: Option<ReplyOf<T>>, host: &mut Host<'_>) {
        host.wake_at(End::Receiver, self.sink_deadline());
        if let Some(reply) = reply {
            let (connection, route) = self.connection_and_route(T::reply_subflow(&reply), host);
            let (bytes, ecn) = self.transport.reply_size(&reply);
            host.send(End::Receiver, T::reply_body(reply), connection, route, bytes, ecn);
        }
    }

    /// Sends until the sender has nothing more to send now.
    pub(crate) fn send_all(&mut self, host: &mut Host<'_>) {
        let now = host.now();
        loop {
            let Self { sender, application, message, .. } = self;
            let output = sender.poll(now, |segment| application.payload(message, segment));
            if host.network.world.is_tapped() {
                self.trace_samples(host);
            }
            match output {
                Output::Transmit(packet) => self.send(packet, host),
                Output::WaitUntil(deadline) => {
                    let next_input = host.stop.min(self.next_write());
                    let deadline = if self.stopped { deadline } else { deadline.min(next_input) };
                    if host.network.world.is_tapped() {
                        self.trace_state(host);
                    }
                    return host.wake_at(End::Sender, deadline);
                }
            }
        }
    }

    #[inline(always)]
    fn send(&mut self, packet: PacketOf<T>, host: &mut Host<'_>) {
        let info = T::packet_info(&packet);
        if let Some(times) = &mut self.delivery_times {
            times.on_sent(host.now(), info);
        }
        let (bytes, ecn) = self.packet_size(&packet);
        let (connection, route) = self.connection_and_route(info.subflow, host);
        match host.send(End::Sender, T::packet_body(packet), connection, route, bytes, ecn) {
            Sent::Away => {}
            Sent::Queued(departure) => self.sender.wait_in_host_queue(&packet, departure),
            Sent::Dropped => self.sender.refuse(host.now(), packet),
        }
    }

    #[inline(always)]
    fn packet_size(&self, packet: &PacketOf<T>) -> (u32, EcnField) {
        self.transport.packet_size(packet, |segment| self.application.payload(&self.message, segment))
    }

    /// The number by which queue disciplines tell connections or subflows apart, and the route of the packets of one.
    #[inline]
    fn connection_and_route(&self, subflow: Option<u16>, host: &Host<'_>) -> (u16, Route) {
        match subflow {
            None => (self.connection_number, host.route),
            Some(subflow) => (subflow, Route::Path(self.transport.paths()[usize::from(subflow)] as u16)),
        }
    }

    /// Bytes of the flow that precede a segment.
    pub(crate) fn bytes_below(&self, segment: u64) -> u64 {
        self.application.bytes_below(&self.message, segment)
    }

    fn delivered_bytes(&self) -> u64 {
        self.delivered_before + self.bytes_below(self.receiver.delivered())
    }

    /// Keeps the reason why the current connection's controller or scheduler has failed, if one has.
    fn keep_controller_failure(&mut self) {
        let failure = self.sender.controller_mut().and_then(|controller| controller.failure().map(str::to_owned));
        let of_scheduler = || self.sender.scheduler_mut().and_then(|it| it.failure().map(str::to_owned));
        self.controller_failures.extend(failure.or_else(of_scheduler));
    }

    /// The sum of a counter over all connections.
    fn total<N: std::iter::Sum>(&self, counter: impl Fn(&SenderCounters) -> N) -> N {
        self.closed.iter().map(&counter).chain([self.sender.total(&counter)]).sum()
    }
}
