//! Ropewalk's own tunnel: the machine that the daemon runs, over inner packets as values.
//!
//! An inner packet leaves the slab when it enters the tunnel, and comes back into it when its last piece has gone up. The
//! datagrams in between are packets of the slab; what they carry is kept here.

use crate::Error;
use crate::packet::{Direction, Packet, Parcel};
use crate::setup::settings_of;
use control::Controller;
use machine::{
    Arrival, Content, DATA_HEADER_BYTES, Delivery, Endpoint, FIRST_UNORDERED, MOST_PATHS, PathSetup, Payload,
    SEAL_BYTES, Setup, Status, Transmit, usual,
};
use scenario::model::{self, Algorithm, OFF};
use schedule::{Fill, Scheduler};
use units::{Instant, PathId, Stream};
use wire::frame::Frame;

/// An inner packet, or a piece of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Piece {
    packet: Packet,
    /// As it entered; its slot is another's by now.
    parcel: Parcel,
    from: u32,
    to: u32,
}

impl Payload for Piece {
    fn len(&self) -> u32 {
        self.to - self.from
    }

    fn slice(&self, from: u32, to: u32) -> Self {
        Self { from: self.from + from, to: self.from + to, ..*self }
    }

    fn signal(&mut self) -> bool {
        self.parcel.marked |= self.parcel.capable;
        self.parcel.capable
    }
}

/// What a datagram on its way carries.
#[derive(Debug)]
struct Datagram {
    transmit: Transmit<Piece>,
    /// The frames of [`Content::Control`].
    frames: Vec<Frame>,
}

/// One end.
#[derive(Debug)]
struct End {
    machine: Endpoint<Piece>,
    assembler: Assembler,
}

/// Both ends, by the direction in which they send.
#[derive(Debug)]
pub(crate) struct Ropewalk {
    ends: [End; 2],
    /// The topology's numbers of the tunnel's paths.
    paths: Vec<u16>,
    /// Bytes of outer IP and UDP headers.
    headers: u32,
    datagrams: Vec<Option<Datagram>>,
    free: Vec<u32>,
}

/// A datagram that leaves: what is put on which path, and its size.
#[derive(Debug)]
pub(crate) struct Leaving {
    pub path: u16,
    pub datagram: u32,
    pub bytes: u32,
    pub capable: bool,
}

impl Ropewalk {
    pub(crate) fn new(
        tunnel: &model::Tunnel,
        settings: &model::Ropewalk,
        paths: &[model::Path],
        seed: u64,
    ) -> Result<Self, Error> {
        if tunnel.paths.len() > MOST_PATHS {
            return Err(fault(format!("{} paths, of which it can have {MOST_PATHS}", tunnel.paths.len())));
        }
        let end = |name: &str| -> Result<End, Error> {
            let seed = Stream::named(seed, &format!("tunnel {name}")).bits();
            let mut machine = Endpoint::new(setup(tunnel, settings, seed)?);
            for (position, path) in tunnel.paths.iter().enumerate() {
                machine.set_path(PathId(position as u16), path_setup(tunnel, settings, position, paths[*path].mtu));
            }
            Ok(End { machine, assembler: Assembler::default() })
        };
        Ok(Self {
            ends: [end("forward")?, end("reverse")?],
            paths: tunnel.paths.iter().map(|path| *path as u16).collect(),
            headers: tunnel.overhead,
            datagrams: Vec::new(),
            free: Vec::new(),
        })
    }

    /// A packet enters at the end that sends in its direction.
    pub(crate) fn offer(&mut self, now: Instant, packet: Packet, parcel: Parcel) {
        let stream = (packet.flow % u16::from(FIRST_UNORDERED)) as u8;
        let piece = Piece { packet, parcel, from: 0, to: parcel.bytes };
        self.ends[packet.direction as usize].machine.offer(now, stream, piece);
    }

    /// The next datagram of an end, if one may leave now. (Its outer header is as ECN-capable as the inner one, but does
    /// not say that the tunnel's own entrance marked it: that is no news of the path.)
    pub(crate) fn transmit(&mut self, now: Instant, direction: Direction) -> Option<Leaving> {
        let machine = &mut self.ends[direction as usize].machine;
        let transmit = machine.poll_transmit(now)?;
        let (frames, body, capable) = match &transmit.content {
            Content::Data(data) => (Vec::new(), DATA_HEADER_BYTES + data.payload.len(), data.payload.parcel.capable),
            Content::Control { pad_to } => {
                let frames = machine.control().to_vec();
                let bytes = frames.iter().map(Frame::len).sum::<usize>() as u32;
                (frames, bytes.max(*pad_to), false)
            }
        };
        let path = self.paths[transmit.path.index()];
        let datagram = self.keep(Datagram { transmit, frames });
        Some(Leaving { path, datagram, bytes: self.headers + SEAL_BYTES + body, capable })
    }

    /// A datagram that was sent in `direction` arrives at the other end.
    pub(crate) fn arrive(&mut self, now: Instant, direction: Direction, datagram: u32, marked: bool) {
        let Some(Datagram { transmit, frames }) = self.take(datagram) else { return };
        let machine = &mut self.ends[1 - direction as usize].machine;
        let arrival = Arrival { path: transmit.path, number: transmit.number, marked };
        match transmit.content {
            Content::Data(data) => machine.receive_data(now, arrival, data),
            Content::Control { .. } => machine.receive_control(now, arrival, &frames),
        }
    }

    /// The next packet that goes up at the end that sends in `direction`: it came the other way.
    pub(crate) fn deliver(&mut self, direction: Direction) -> Option<(Packet, Parcel)> {
        let End { machine, assembler } = &mut self.ends[direction as usize];
        while machine.poll_event().is_some() {}
        loop {
            let whole = assembler.add(&machine.poll_delivery()?);
            if whole.is_some() {
                return whole;
            }
        }
    }

    pub(crate) fn on_timeout(&mut self, now: Instant, direction: Direction) {
        self.ends[direction as usize].machine.on_timeout(now);
    }

    pub(crate) fn deadline(&self, now: Instant, direction: Direction) -> Instant {
        self.ends[direction as usize].machine.deadline(now)
    }

    /// An end's own numbers.
    pub(crate) fn status(&self, direction: Direction) -> Status {
        self.ends[direction as usize].machine.status()
    }

    /// Packets that have gone up at the end that sends in `direction`.
    pub(crate) fn delivered(&self, direction: Direction) -> u64 {
        self.ends[direction as usize].assembler.delivered
    }

    /// The topology's numbers of the tunnel's paths.
    pub(crate) fn paths(&self) -> &[u16] {
        &self.paths
    }

    /// Datagrams on their way.
    pub(crate) fn on_their_way(&self) -> u64 {
        (self.datagrams.len() - self.free.len()) as u64
    }

    fn keep(&mut self, datagram: Datagram) -> u32 {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.datagrams.push(None);
            (self.datagrams.len() - 1) as u32
        });
        self.datagrams[slot as usize] = Some(datagram);
        slot
    }

    fn take(&mut self, datagram: u32) -> Option<Datagram> {
        self.free.push(datagram);
        self.datagrams[datagram as usize].take()
    }

    /// The datagram was lost.
    pub(crate) fn forget(&mut self, datagram: u32) {
        self.take(datagram);
    }
}

/// Puts the pieces of a packet together.
#[derive(Debug)]
struct Assembler {
    /// Of each stream: is every piece of the present packet there so far, and was one of them marked?
    present: Vec<Option<bool>>,
    delivered: u64,
}

impl Default for Assembler {
    fn default() -> Self {
        Self { present: vec![None; 1 << u8::BITS], delivered: 0 }
    }
}

impl Assembler {
    /// The packet, if this was its last piece and none is missing.
    fn add(&mut self, delivery: &Delivery<Piece>) -> Option<(Packet, Parcel)> {
        let Delivery { stream, payload: Piece { packet, mut parcel, .. }, first, last, gap, marked } = *delivery;
        let present = &mut self.present[usize::from(stream)];
        let before = if first { Some(false) } else { present.filter(|_| !gap) };
        if !(first && last) {
            *present = before.map(|before| before || marked).filter(|_| !last);
        }
        let whole = before.filter(|_| last)?;
        parcel.marked |= parcel.capable && (whole || marked);
        self.delivered += 1;
        Some((packet, parcel))
    }
}

fn setup(tunnel: &model::Tunnel, settings: &model::Ropewalk, seed: u64) -> Result<Setup, Error> {
    let usual = Setup::usual(scheduler(tunnel, settings)?, controller(settings)?, seed);
    Ok(Setup {
        repair: settings.repair.unwrap_or(usual.repair),
        order: settings.order.unwrap_or(usual.order),
        deliver_late: settings.deliver_late.unwrap_or(usual.deliver_late),
        hold_most: settings.hold.unwrap_or(usual.hold_most),
        probe: settings.probe.unwrap_or(usual.probe),
        target: settings.target.unwrap_or(usual.target),
        interval: settings.interval.unwrap_or(usual.interval),
        memory: settings.memory.unwrap_or(usual.memory),
        ..usual
    })
}

fn path_setup(tunnel: &model::Tunnel, settings: &model::Ropewalk, position: usize, mtu: u32) -> PathSetup {
    PathSetup {
        backup: settings.backup.contains(&position),
        metered: settings.metered.contains(&position),
        largest: mtu.saturating_sub(tunnel.overhead),
        headers: tunnel.overhead,
        most: None,
    }
}

fn scheduler(tunnel: &model::Tunnel, settings: &model::Ropewalk) -> Result<Box<dyn Scheduler>, Error> {
    let usual = || Algorithm { name: usual::SCHEDULER.to_owned(), parameters: Default::default() };
    let chosen = settings.scheduler.clone().unwrap_or_else(usual);
    let entry = schedule::find(&chosen.name).ok_or_else(|| Error::UnknownScheduler { name: chosen.name.clone() })?;
    if entry.fill != Fill::Window {
        return Err(fault(format!("`{}` fills send buffers, which paths of a tunnel do not have", entry.name)));
    }
    let built = entry.scheduler(&tunnel.weights, 0, &settings_of(&chosen));
    built.map_err(|bad| fault(format!("{}: {bad}", entry.name)))
}

fn controller(settings: &model::Ropewalk) -> Result<Option<Box<dyn Controller>>, Error> {
    let usual = || Algorithm { name: usual::CONGESTION.to_owned(), parameters: Default::default() };
    let chosen = settings.congestion.clone().unwrap_or_else(usual);
    if chosen.name == OFF {
        return Ok(None);
    }
    let entry = control::registry::find(&chosen.name);
    let entry = entry.ok_or_else(|| fault(format!("no congestion control is called `{}`", chosen.name)))?;
    let built = entry.controller(&settings_of(&chosen));
    built.map(Some).map_err(|bad| fault(format!("{}: {bad}", entry.name)))
}

fn fault(what: String) -> Error {
    Error::Tunnel { what }
}
