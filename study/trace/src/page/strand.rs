//! The packets of a flow on one subflow, their acknowledgements, and the states of its sender.

use super::column::Column;
use schedule::PathView;
use serde_json::{Value, json};
use sim::{Direction, LossCause, TracedSender};
use std::collections::{BTreeMap, VecDeque};
use std::io;
use transport::path::Limit;
use units::{INFINITE_SSTHRESH, Instant, Span};

/// A packet is new data.
pub(super) const DATA: u8 = 0;
/// A packet is a retransmission, or in QUIC a reinjection.
pub(super) const RETRANSMISSION: u8 = 1;
/// A packet has data that another subflow was assigned before.
pub(super) const COPY: u8 = 2;
const KINDS: u8 = 3;
const ARRIVED: u8 = 4;
const LOST: u8 = 8;
/// An earlier transmission of the same data has arrived.
const SPURIOUS: u8 = 16;
/// The value of a cell without one.
pub(super) const NONE: i64 = -1;

/// A packet as a host sends it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Packet {
    pub(super) connection: u16,
    /// The segment or packet number.
    pub(super) number: u64,
    /// The number of its data in the connection; none if it is the packet's own number.
    pub(super) data: Option<u64>,
    pub(super) kind: u8,
}

/// An acknowledgement that reaches the sender.
#[derive(Clone, Copy, Debug)]
pub(super) struct Acknowledgement {
    pub(super) connection: u16,
    /// The first number that has not arrived.
    pub(super) ack: u64,
    /// The same of data, if data has other numbers.
    pub(super) data: Option<u64>,
    /// The number from which on the receive window forbids data, if packets have a known size.
    pub(super) window: Option<u64>,
    /// The first SACK block.
    pub(super) sack: Option<(u64, u64)>,
}

/// A loss: the link and the direction, if a link has lost the packet, and the cause.
pub(super) type Loss = (Option<(usize, Direction)>, LossCause);

/// What limits a flow or a subflow over time: places in [`Limit::ALL`].
#[derive(Debug, Default)]
pub(super) struct Limits([Column; 2]);

impl Limits {
    /// Adds a limit, if it has changed.
    pub(super) fn push(&mut self, at: Instant, limit: Limit) {
        let [times, limits] = &mut self.0;
        let place = Limit::ALL.iter().position(|other| *other == limit).map_or(NONE, |place| place as i64);
        if times.len() == 0 || limits.last() != place {
            times.push(micros(at));
            limits.push(place);
        }
    }

    pub(super) fn packed(&self) -> io::Result<Value> {
        packed(&["t", "limit"], &self.0.each_ref())
    }
}

/// What one subflow, or a flow over one path, has sent and received. Times are in microseconds.
#[derive(Debug, Default)]
pub(super) struct Strand {
    pub(super) name: String,
    pub(super) path: Option<usize>,
    /// The numbers of the path's links.
    pub(super) links: Vec<usize>,
    times: Column,
    numbers: Column,
    data: Column,
    flags: Vec<u8>,
    /// Time from sending to arrival or loss.
    delays: Vec<u32>,
    losses: BTreeMap<usize, Loss>,
    /// Packets that are on their way, by connection, number and kind: their places.
    on_their_way: BTreeMap<(u16, u64, u8), VecDeque<(usize, Instant)>>,
    acks: [Column; 4],
    /// Time, first number, and number after the last of each SACK block that is not the latest one.
    sacks: [Column; 3],
    latest_sack: Option<(u64, u64)>,
    rtts: [Column; 2],
    /// At each choice of the scheduler: packets buffered, and the path's availability: 0 inactive, 1 full, 2 with room.
    views: [Column; 2],
    states: [Column; 9],
    /// The number of the first packet of each connection: numbers continue from one connection to the next.
    first_numbers: Vec<i64>,
    end: i64,
    sender: Option<TracedSender>,
    pub(super) limits: Limits,
}

/// The counts of a strand.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    pub(super) sent: u64,
    pub(super) retransmitted: u64,
    pub(super) spurious: u64,
    pub(super) copies: u64,
    pub(super) lost: u64,
}

pub(super) fn micros(at: Instant) -> i64 {
    (at.0 / 1000) as i64
}

impl Strand {
    pub(super) fn new(name: &str, path: Option<usize>, links: Vec<usize>) -> Self {
        Self { name: name.to_owned(), path, links, ..Self::default() }
    }

    /// The number on the page of a packet of a connection.
    fn number(&mut self, connection: u16, number: u64) -> i64 {
        let connection = usize::from(connection);
        while self.first_numbers.len() <= connection {
            self.first_numbers.push(self.end);
        }
        self.first_numbers[connection] + number as i64
    }

    /// Adds a packet; returns the number of its data.
    pub(super) fn on_sent(&mut self, at: Instant, packet: &Packet) -> i64 {
        let number = self.number(packet.connection, packet.number);
        self.end = self.end.max(number + 1);
        let way = self.on_their_way.entry((packet.connection, packet.number, packet.kind)).or_default();
        way.push_back((self.flags.len(), at));
        self.times.push(micros(at));
        self.numbers.push(number);
        let data = packet.data.map_or(number, |data| data as i64);
        self.data.push(data);
        self.flags.push(packet.kind);
        self.delays.push(0);
        data
    }

    /// Notes the arrival or the loss of a packet. Returns its data and the time at which it was sent; none for the copy that a
    /// link has made.
    pub(super) fn on_end(&mut self, at: Instant, packet: &Packet, loss: Option<Loss>) -> Option<(i64, i64)> {
        let key = (packet.connection, packet.number, packet.kind);
        let way = self.on_their_way.get_mut(&key)?;
        let (place, sent) = way.pop_front()?;
        if way.is_empty() {
            self.on_their_way.remove(&key);
        }
        self.flags[place] |= if loss.is_some() { LOST } else { ARRIVED };
        self.delays[place] = u32::try_from(at.since(sent).0 / 1000).unwrap_or(u32::MAX);
        loss.and_then(|loss| self.losses.insert(place, loss));
        let data = packet.data.map_or_else(|| self.number(packet.connection, packet.number), |data| data as i64);
        Some((data, micros(sent)))
    }

    /// Adds what an acknowledgement says for the first time.
    pub(super) fn on_ack(&mut self, at: Instant, said: &Acknowledgement) {
        let first = self.number(said.connection, 0);
        let ack = first + said.ack as i64;
        if said.sack != self.latest_sack {
            self.latest_sack = said.sack;
            if let Some((start, end)) = said.sack {
                let row = [micros(at), first + start as i64, first + end as i64];
                self.sacks.iter_mut().zip(row).for_each(|(column, value)| column.push(value));
            }
        }
        let [times, acks, of_data, windows] = &mut self.acks;
        let data = said.data.map_or(ack, |data| data as i64).max(of_data.last());
        let window = said.window.map_or(NONE, |window| first + window as i64);
        if ack > acks.last() || data > of_data.last() || window != windows.last() {
            times.push(micros(at));
            acks.push(ack.max(acks.last()));
            of_data.push(data);
            windows.push(window);
        }
    }

    /// Adds an RTT sample.
    pub(super) fn on_rtt(&mut self, at: Instant, rtt: Span) {
        let [times, rtts] = &mut self.rtts;
        times.push(micros(at));
        rtts.push((rtt.0 / 1000) as i64);
    }

    /// Adds what the scheduler sees of the subflow.
    pub(super) fn on_view(&mut self, view: &PathView) {
        let [buffered, availability] = &mut self.views;
        buffered.push(i64::from(view.buffered_packets()));
        availability.push(i64::from(view.active) + i64::from(view.active && view.has_room));
    }

    /// Adds a state, if it has changed.
    pub(super) fn on_state(&mut self, at: Instant, sender: &TracedSender) {
        if self.sender.replace(*sender) == Some(*sender) {
            return;
        }
        let row = [
            micros(at),
            i64::from(sender.cwnd),
            if sender.ssthresh == INFINITE_SSTHRESH { NONE } else { i64::from(sender.ssthresh) },
            i64::from(sender.in_flight),
            sender.pacing_rate.map_or(NONE, |rate| (rate.as_mbps() * 1000.0) as i64),
            if sender.srtt == Span::ZERO { NONE } else { (sender.srtt.0 / 1000) as i64 },
            sender.ca_state as i64,
            sender.lost as i64,
            sender.timeouts as i64,
        ];
        self.states.iter_mut().zip(row).for_each(|(column, value)| column.push(value));
    }

    /// Adds the packets in flight, where nothing else is known of the sender.
    pub(super) fn on_flight(&mut self, at: Instant, in_flight: u64) {
        let row = [micros(at), NONE, NONE, in_flight as i64, NONE, NONE, NONE, 0, 0];
        self.states.iter_mut().zip(row).for_each(|(column, value)| column.push(value));
    }

    /// Marks retransmissions as spurious, of whose data an earlier transmission has arrived. `arrived` has the
    /// time at which the first transmission that arrived was sent, by the number of the data.
    pub(super) fn mark_spurious(&mut self, arrived: &[i64]) {
        let sent = self.times.values().zip(self.data.values());
        for (flags, (time, data)) in self.flags.iter_mut().zip(sent) {
            let is_again = *flags & KINDS == RETRANSMISSION;
            let has_arrived = arrived.get(data as usize).is_some_and(|first| *first < time);
            *flags |= if is_again && has_arrived { SPURIOUS } else { 0 };
        }
    }

    pub(super) fn counts(&self) -> Counts {
        let count = |is_counted: fn(u8) -> bool| self.flags.iter().filter(|flags| is_counted(**flags)).count() as u64;
        Counts {
            sent: count(|_| true),
            retransmitted: count(|flags| flags & KINDS == RETRANSMISSION),
            spurious: count(|flags| flags & SPURIOUS != 0),
            copies: count(|flags| flags & KINDS == COPY),
            lost: count(|flags| flags & LOST != 0),
        }
    }

    /// Packets marked lost by the sender, and retransmission timeouts.
    pub(super) fn declared(&self) -> [u64; 2] {
        self.sender.map_or([0; 2], |sender| [sender.lost, sender.timeouts])
    }

    /// The strand as the page has it.
    pub(super) fn packed(&self, colour: [&str; 2]) -> io::Result<Value> {
        let link = |(link, _): &Loss| link.map_or(NONE, |(link, direction)| 2 * link as i64 + direction as i64);
        let losses = [
            self.losses.values().map(link).collect::<Column>(),
            self.losses.values().map(|(_, cause)| *cause as i64).collect(),
        ];
        let flags = self.flags.iter().map(|flags| i64::from(*flags)).collect();
        let delays = self.delays.iter().map(|delay| i64::from(*delay)).collect();
        Ok(json!({
            "name": self.name,
            "links": self.links,
            "colour": colour,
            "packets": packed(&["t", "number", "data", "flags", "delay"], &[&self.times, &self.numbers, &self.data, &flags, &delays])?,
            "losses": packed(&["link", "cause"], &losses.each_ref())?,
            "acks": packed(&["t", "number", "data", "window"], &self.acks.each_ref())?,
            "sacks": packed(&["t", "from", "to"], &self.sacks.each_ref())?,
            "rtts": packed(&["t", "rtt"], &self.rtts.each_ref())?,
            "views": packed(&["buffered", "availability"], &self.views.each_ref())?,
            "states": packed(&STATES, &self.states.each_ref())?,
            "limits": self.limits.packed()?,
        }))
    }
}

const STATES: [&str; 9] = ["t", "cwnd", "ssthresh", "flight", "pacing", "srtt", "state", "lost", "timeouts"];

/// Columns of one length as the page has them: their length, and the text of each by its name.
pub(super) fn packed(names: &[&str], columns: &[&Column]) -> io::Result<Value> {
    let mut table = json!({ "length": columns.first().map_or(0, |column| column.len()) });
    for (name, column) in names.iter().zip(columns) {
        table[name] = column.packed()?.into();
    }
    Ok(table)
}
