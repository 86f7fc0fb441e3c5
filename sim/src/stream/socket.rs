//! What a relay does with the sockets of its TCP connections.

use crate::packet::TcpPacket;
use crate::protocol::Host;
use crate::stream::TcpFlow;
use crate::stream::transport::{Command, Receiver, Sender};
use transport::tcp::Segment;

impl TcpFlow {
    pub(crate) fn connect(&mut self, host: &mut Host<'_>) {
        self.sender.command(host.now(), Command::Connect);
        self.send_all(host);
    }

    /// Answers a SYN that was held back.
    pub(crate) fn accept(&mut self, syn: Segment, host: &mut Host<'_>) {
        let packet = TcpPacket::new(syn);
        let answer = self.answer(host.now(), &packet, false);
        self.send_reply(answer, host);
    }

    /// Writes segments, of which the last one lacks some bytes, if there are any, and sends what can be sent.
    pub(crate) fn write(&mut self, segments: Option<(u64, u32)>, host: &mut Host<'_>) {
        if let Some((segments, lacking)) = segments {
            self.sender.command(host.now(), Command::Write { segments, lacking });
        }
        self.send_all(host);
    }

    /// Called when the application of a receiver that does not read at once has read the first `bytes`, which may need a
    /// window update.
    pub(crate) fn read(&mut self, bytes: u64, host: &mut Host<'_>) {
        let delivered = self.receiver.delivered();
        let is_all = bytes >= self.bytes_below(delivered);
        let read = if is_all { delivered } else { bytes / u64::from(self.mss()) };
        let update = self.receiver.machine.read(host.now(), read);
        self.send_reply(update, host);
    }

    /// Segments that the sender has sent, retransmissions not counted.
    pub(crate) fn sent_segments(&self) -> u64 {
        let sender = &self.sender.machine;
        sender.acknowledged() + u64::from(sender.pipe().packets_out)
    }
}
