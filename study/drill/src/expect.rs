//! Compares the packets sent with those that a script expects: bytes, acknowledgement, SACK blocks, ECE, CWR, and the time.
//! PSH, window, ECN field and option values are not compared.

use crate::error::ScriptError;
use crate::host::{Sent, What, describe, seconds};
use crate::packet::Packet;
use crate::run::{Next, Run, at};
use transport::tcp::Ack;
use transport::tcp::sender::Input;

/// A packet that must be sent between two times, microseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Expected<'a> {
    pub line: usize,
    pub packet: &'a Packet,
    pub from: u64,
    pub to: u64,
}

impl Expected<'_> {
    fn describe(&self) -> String {
        let Packet { flags, seq, len, ack, .. } = self.packet;
        let ack = ack.map_or_else(String::new, |ack| format!(" ack {ack}"));
        let time = if self.from < self.to {
            format!("from {} to {} s", seconds(self.from), seconds(self.to))
        } else {
            at(self.from)
        };
        format!("{flags} {seq}:{}({len}){ack} {time}", self.packet.end())
    }
}

impl Run {
    pub(crate) fn expect(&mut self, expected: &Expected<'_>) -> Result<Next, ScriptError> {
        let packet = expected.packet;
        if packet.has('F') || packet.has('R') {
            return Ok(self.end(expected.line));
        }
        if packet.has('S') && packet.has('.') {
            self.host.run_until(expected.from);
            self.host.handle(Input::Connect);
        }
        let Some(first) = self.next_in_time(expected) else { return Ok(Next::End) };
        self.clocks.push((timestamp(packet), first.tsval));
        let fits = match first.what {
            What::Syn => packet.has('S'),
            What::HandshakeAck => packet.len == 0 && !packet.has('S'),
            What::Probe(byte) => packet.len == 0 && packet.seq + 1 == byte,
            What::Ack(ack) => return Ok(self.expect_ack(expected, &first, &ack)),
            What::Data(..) => return Ok(self.expect_data(expected)),
        };
        if !fits {
            return Ok(self.differs_from(expected, &first));
        }
        self.passes()
    }

    /// Counts a packet that has left as expected.
    fn passes(&mut self) -> Result<Next, ScriptError> {
        self.host.sent.pop_front();
        self.outcome.packets += 1;
        Ok(Next::Event)
    }

    fn differs_from(&mut self, expected: &Expected<'_>, sent: &Sent) -> Next {
        self.differs(expected.line, expected.describe(), format!("{} {}", describe(&sent.what), at(sent.at)))
    }

    /// The next packet, if it is sent in time; otherwise there is a difference.
    fn next_in_time(&mut self, expected: &Expected<'_>) -> Option<Sent> {
        let latest = expected.to + self.setup.tolerance;
        let Some(sent) = self.host.next_sent(latest) else {
            self.host.run_until(latest);
            self.differs(expected.line, expected.describe(), format!("nothing until {} s", seconds(latest)));
            return None;
        };
        if sent.at + self.setup.tolerance < expected.from || sent.at > latest {
            self.differs_from(expected, &sent);
            return None;
        }
        Some(sent)
    }

    /// Expects segments that together are the expected bytes.
    fn expect_data(&mut self, expected: &Expected<'_>) -> Next {
        let packet = expected.packet;
        let mut next = packet.seq;
        let mut has_cwr = false;
        while next < packet.end() || next == packet.seq {
            let Some(sent) = self.next_in_time(expected) else { return Next::End };
            match sent.what {
                What::Data(start, end, cwr) if start == next && end <= packet.end() => {
                    (next, has_cwr) = (end, has_cwr | cwr);
                }
                _ => return self.differs_from(expected, &sent),
            }
            self.host.sent.pop_front();
        }
        if packet.has('W') && !has_cwr {
            return self.differs(expected.line, expected.describe(), "no CWR".to_owned());
        }
        self.outcome.packets += 1;
        Next::Event
    }

    /// Expects an acknowledgement without data.
    fn expect_ack(&mut self, expected: &Expected<'_>, sent: &Sent, ack: &Ack) -> Next {
        let packet = expected.packet;
        let byte = |segment: u64| segment * self.setup.mss + 1;
        let blocks: Vec<_> = ack.sack_blocks.iter().map(|(start, end)| (byte(start), byte(end))).collect();
        let has_blocks = packet.options.as_ref().is_none_or(|options| options.any || options.sack == blocks);
        let is_acked = packet.ack == Some(byte(ack.ack)) && packet.has('E') == ack.ece;
        if packet.len > 0 || packet.has('S') || !has_blocks || !is_acked {
            let ece = if ack.ece { " with ECE" } else { "" };
            let found = format!("ack {}{ece}, SACK {blocks:?} {}", byte(ack.ack), at(sent.at));
            return self.differs(expected.line, expected.describe(), found);
        }
        self.host.sent.pop_front();
        self.outcome.packets += 1;
        Next::Event
    }
}

/// The script's TSval of a packet of ours.
fn timestamp(packet: &Packet) -> u32 {
    packet.options.as_ref().and_then(|options| options.timestamps).map_or(0, |(tsval, _)| tsval)
}
