//! Requests of a client and the server's responses, on one connection or on a new one for each.

use crate::packet::Body;
use crate::protocol::{End, Host};
use crate::stream::StreamFlow;
use crate::stream::application::{Application, Client, Message, RequestKind};
use crate::stream::transport::{Command, Receiver, Sender, Transport};
use scenario::model::Requests;
use units::Instant;

impl<T: Transport> StreamFlow<T> {
    /// Sends a client's request, if one is due.
    pub(super) fn send_request(&mut self, host: &mut Host<'_>) {
        let Some(number) = self.next_request(host.now()) else { return };
        let subflow = self.request_subflow();
        host.wake_at(End::Receiver, self.sink_deadline());
        let bytes = self.transport.config().header_bytes + Requests::REQUEST_BYTES;
        let ecn = self.transport.config().control_ecn();
        let (connection, route) = self.connection_and_route(subflow, host);
        host.send(End::Receiver, Body::Request(number), connection, route, bytes, ecn);
    }

    /// Number of the request that the client sends now, if one is due.
    fn next_request(&mut self, now: Instant) -> Option<u32> {
        let Application::Requests(client) = &mut self.application else { return None };
        let kind = client.wake(now)?;
        let request_number = client.request_number();
        if kind == RequestKind::New {
            let (size, reconnects) = (client.draw_size(), client.reconnects());
            self.prepare_response(now, size, reconnects);
        }
        Some(request_number)
    }

    /// The subflow on which the client's current request is sent, of a connection over several paths.
    fn request_subflow(&self) -> Option<u16> {
        let retransmissions = self.client().map_or(0, Client::retransmissions);
        (!self.transport.paths().is_empty()).then(|| self.sender.request_subflow(retransmissions))
    }

    /// Prepares for a response of `size` bytes, on a new connection if the client reconnects.
    fn prepare_response(&mut self, now: Instant, size: u64, reconnects: bool) {
        self.delivered_before += self.message.bytes.unwrap_or(0);
        let mut first_segment = self.end;
        if reconnects {
            self.reconnect(now);
            first_segment = 0;
        }
        self.message = Message::new(first_segment, Some(size), self.mss());
        self.end = self.message.end();
        let subflow = self.request_subflow().unwrap_or(0);
        self.piggybacked = if first_segment > 0 { self.receiver.piggyback(now, subflow) } else { None };
    }

    /// Replaces the connection by a new one.
    fn reconnect(&mut self, now: Instant) {
        self.closed.extend(self.sender.senders().map(|sender| sender.counters));
        self.limits.close(&self.sender, now);
        self.keep_controller_failure();
        self.connection_number = self.connection_number.wrapping_add(1);
        (self.sender, self.receiver) = self.transport.ends(self.connection_number);
    }

    /// Called when a request reaches the server.
    pub(super) fn on_request(&mut self, now: Instant, request_number: u32) {
        let Application::Requests(client) = &mut self.application else { return };
        if !client.serve(request_number) {
            return;
        }
        if let Some(reply) = self.piggybacked {
            self.on_reply(now, &reply);
        }
        if !self.stopped {
            self.sender.command(now, Command::Connect);
            self.write_message(now);
        }
    }
}
