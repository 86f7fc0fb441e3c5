//! A capture in the format pcapng (draft-ietf-opsawg-pcapng): three kinds of blocks; an interface per path, or per
//! direction of a link.

use crate::crossings::{Crossed, Crossings};
use crate::headers::{Encoded, Encoder};
use crate::place::Place;
use scenario::model::Experiment;
use sim::{Direction, Simulation, TraceEvent, Traced, TracedPacket};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use units::Instant;

const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const INTERFACE_DESCRIPTION: u32 = 1;
const ENHANCED_PACKET: u32 = 6;
const ETHERNET: u16 = 1;
const OPT_COMMENT: u16 = 1;
const IF_NAME: u16 = 2;
const IF_TSRESOL: u16 = 9;
/// Times in nanoseconds.
const NANOSECONDS: u8 = 9;

/// A capture that is being written.
#[derive(Debug)]
pub(crate) struct Capture {
    file: BufWriter<File>,
    encoder: Encoder,
    place: Place,
    /// Of a link.
    crossings: Option<Crossings>,
}

impl Capture {
    /// Writes the beginning: the tunnel's interface and one for each path, or the link's directions.
    pub(crate) fn new(
        file: File,
        experiment: &Experiment,
        simulation: &Simulation,
        place: Place,
        has_payload: bool,
    ) -> io::Result<Self> {
        let (interfaces, crossings) = match place {
            Place::Near | Place::Far => {
                let paths = experiment.paths.iter().map(|path| path.name.clone());
                (std::iter::once("tunnel".to_owned()).chain(paths).collect(), None)
            }
            Place::Link { link, end } => {
                let link = &experiment.links[link];
                (vec![link.name.clone(), format!("{} reverse", link.name)], Some(Crossings::new(link, end)))
            }
        };
        let encoder = Encoder::new(experiment, simulation, has_payload);
        let mut capture = Self { file: BufWriter::new(file), encoder, place, crossings };
        let mut section = 0x1a2b_3c4d_u32.to_le_bytes().to_vec();
        section.extend([1, 0, 0, 0]); // version 1.0
        section.extend(u64::MAX.to_le_bytes()); // of unknown length
        capture.block(SECTION_HEADER, &section)?;
        for name in interfaces {
            let mut interface = ETHERNET.to_le_bytes().to_vec();
            interface.extend([0; 6]); // reserved; no limit of the length
            push_option(&mut interface, IF_NAME, name.as_bytes());
            push_option(&mut interface, IF_TSRESOL, &[NANOSECONDS]);
            push_option(&mut interface, 0, &[]);
            capture.block(INTERFACE_DESCRIPTION, &interface)?;
        }
        Ok(capture)
    }

    /// Writes the packets at the place, and flushes them to the system.
    pub(crate) fn write(&mut self, events: &[TraceEvent]) -> io::Result<()> {
        for TraceEvent { at, what } in events {
            match what {
                Traced::Sent(packet) => {
                    self.encoder.on_sent(packet);
                    self.at_host(*at, packet, true)?;
                }
                Traced::Delivered(packet) => self.at_host(*at, packet, false)?,
                Traced::Crossing(crossing) => {
                    let crossings = self.crossings.as_mut();
                    let crossed = crossings.map(|crossings| crossings.step(*at, crossing, &mut self.encoder));
                    self.crossed(crossed.unwrap_or_default())?;
                }
                _ => {}
            }
        }
        self.file.flush()
    }

    /// Writes the packets that are still in the link.
    pub(crate) fn finish(&mut self) -> io::Result<()> {
        let crossed = self.crossings.as_mut().map(Crossings::finish);
        self.crossed(crossed.unwrap_or_default())?;
        self.file.flush()
    }

    /// Writes a packet if the host that sends it, or gets it, is at the place.
    fn at_host(&mut self, at: Instant, packet: &TracedPacket, is_sent: bool) -> io::Result<()> {
        let is_near = (packet.direction == Direction::Forward) == is_sent;
        if self.place != if is_near { Place::Near } else { Place::Far } {
            return Ok(());
        }
        let Some(encoded) = self.encoder.encode(at, packet) else { return Ok(()) };
        self.packet(at, packet.path.map_or(0, |path| path as u32 + 1), &encoded)
    }

    fn crossed(&mut self, packets: Vec<Crossed>) -> io::Result<()> {
        packets.into_iter().try_for_each(|crossed| self.packet(crossed.at, crossed.direction as u32, &crossed.encoded))
    }

    fn packet(&mut self, at: Instant, interface: u32, encoded: &Encoded) -> io::Result<()> {
        let mut body = interface.to_le_bytes().to_vec();
        body.extend(((at.0 >> 32) as u32).to_le_bytes());
        body.extend((at.0 as u32).to_le_bytes());
        body.extend((encoded.bytes.len() as u32).to_le_bytes());
        body.extend(encoded.size.to_le_bytes());
        body.extend(&encoded.bytes);
        pad(&mut body);
        for comment in &encoded.comments {
            push_option(&mut body, OPT_COMMENT, comment.as_bytes());
        }
        if !encoded.comments.is_empty() {
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
