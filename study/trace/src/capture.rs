//! A capture in the format pcapng (draft-ietf-opsawg-pcapng): three kinds of blocks, and one interface per path.

use crate::headers::Encoder;
use scenario::model::Experiment;
use sim::{Direction, Simulation, TraceEvent, Traced, TracedPacket};
use std::fs::File;
use std::io::{self, BufWriter, Write};

const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const INTERFACE_DESCRIPTION: u32 = 1;
const ENHANCED_PACKET: u32 = 6;
const ETHERNET: u16 = 1;
const OPT_COMMENT: u16 = 1;
const IF_NAME: u16 = 2;
const IF_TSRESOL: u16 = 9;
/// Times in nanoseconds.
const NANOSECONDS: u8 = 9;

/// A side of the network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Side {
    /// The near end of the paths: the hosts that send in the forward direction.
    #[default]
    Near,
    /// The far end of the paths.
    Far,
}

/// A capture that is being written.
#[derive(Debug)]
pub(crate) struct Capture {
    file: BufWriter<File>,
    encoder: Encoder,
    side: Side,
}

impl Capture {
    /// Writes the beginning: the tunnel's interface, and then one for each path.
    pub(crate) fn new(
        file: File,
        experiment: &Experiment,
        simulation: &Simulation,
        side: Side,
        has_payload: bool,
    ) -> io::Result<Self> {
        let encoder = Encoder::new(experiment.flows.len(), simulation, has_payload);
        let mut capture = Self { file: BufWriter::new(file), encoder, side };
        let mut section = 0x1a2b_3c4d_u32.to_le_bytes().to_vec();
        section.extend([1, 0, 0, 0]); // version 1.0
        section.extend(u64::MAX.to_le_bytes()); // of unknown length
        capture.block(SECTION_HEADER, &section)?;
        for name in std::iter::once("tunnel").chain(experiment.paths.iter().map(|path| path.name.as_str())) {
            let mut interface = ETHERNET.to_le_bytes().to_vec();
            interface.extend([0; 6]); // reserved; no limit of the length
            push_option(&mut interface, IF_NAME, name.as_bytes());
            push_option(&mut interface, IF_TSRESOL, &[NANOSECONDS]);
            push_option(&mut interface, 0, &[]);
            capture.block(INTERFACE_DESCRIPTION, &interface)?;
        }
        Ok(capture)
    }

    /// Writes the packets that leave and reach the hosts of the side, and flushes them to the system.
    pub(crate) fn write(&mut self, events: &[TraceEvent]) -> io::Result<()> {
        for TraceEvent { at, what } in events {
            let (packet, is_sent) = match what {
                Traced::Sent(packet) => (packet, true),
                Traced::Delivered(packet) => (packet, false),
                _ => continue,
            };
            if is_sent {
                self.encoder.on_sent(packet);
            }
            if self.is_here(packet, is_sent) {
                self.packet(*at, packet)?;
            }
        }
        self.file.flush()
    }

    /// Whether the host that sends a packet, or gets it, is on this side.
    fn is_here(&self, packet: &TracedPacket, is_sent: bool) -> bool {
        let is_near = (packet.direction == Direction::Forward) == is_sent;
        is_near == (self.side == Side::Near)
    }

    fn packet(&mut self, at: units::Instant, packet: &TracedPacket) -> io::Result<()> {
        let Some(encoded) = self.encoder.encode(at, packet) else { return Ok(()) };
        let interface = packet.path.map_or(0, |path| path as u32 + 1);
        let mut body = interface.to_le_bytes().to_vec();
        body.extend(((at.0 >> 32) as u32).to_le_bytes());
        body.extend((at.0 as u32).to_le_bytes());
        body.extend((encoded.bytes.len() as u32).to_le_bytes());
        body.extend(encoded.size.to_le_bytes());
        body.extend(&encoded.bytes);
        pad(&mut body);
        if let Some(comment) = encoded.comment {
            push_option(&mut body, OPT_COMMENT, comment.as_bytes());
            push_option(&mut body, 0, &[]);
        }
        self.block(ENHANCED_PACKET, &body)
    }

    /// Writes a block, between its type and twice its length.
    fn block(&mut self, kind: u32, body: &[u8]) -> io::Result<()> {
        let length = (body.len() as u32 + 12).to_le_bytes();
        [&kind.to_le_bytes()[..], &length, body, &length].iter().try_for_each(|part| self.file.write_all(part))
    }
}

/// Adds an option: code, length, value, padding.
fn push_option(body: &mut Vec<u8>, code: u16, value: &[u8]) {
    body.extend(code.to_le_bytes());
    body.extend((value.len() as u16).to_le_bytes());
    body.extend(value);
    pad(body);
}

/// Pads to a multiple of four.
fn pad(body: &mut Vec<u8>) {
    body.resize(body.len().next_multiple_of(4), 0);
}
