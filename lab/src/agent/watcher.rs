//! Samples one flow: what its sink has got, and the state of the kernel's connections that carry it. Tells at its end what
//! was seen.

use super::tally::{Ends, Tally};
use super::tcp_info::{Connection, Hosts};
use super::{Outcome, counters, span, within};
use crate::Generator;
use crate::plan::{Kind, Multipath, Observation, Sample, Traffic};
use std::net::{IpAddr, SocketAddr};

/// Samples one flow.
pub(super) struct Watcher<'a> {
    traffic: &'a Traffic,
    hosts: Hosts,
    seen: Observation,
    /// Of an MPTCP connection, once its first subflow has been seen.
    token: Option<u32>,
    /// Both ends of all its subflows so far, by which they are known when they are gone.
    known: Vec<[SocketAddr; 2]>,
    /// The kernel's count of what the sink has got.
    received: u64,
    /// Datagrams, or answers to requests, that had arrived at the last sample.
    count: u64,
    /// A sample has been taken after the flow's end.
    ended: bool,
}

impl<'a> Watcher<'a> {
    pub(super) fn new(traffic: &'a Traffic) -> Outcome<Self> {
        let subflows = vec![Vec::new(); traffic.subflows().map_or(0, <[IpAddr]>::len)];
        let seen = Observation { subflows, ..Observation::default() };
        // The one connection of a source and a sink of our own is there as long as they are.
        let may_go = traffic.tool().is_some() || traffic.subflows().is_some();
        let hosts = if may_go { Hosts::that_remember(&traffic.sides) } else { Hosts::of(&traffic.sides) };
        Ok(Self { traffic, hosts: hosts?, seen, token: None, known: Vec::new(), received: 0, count: 0, ended: false })
    }

    /// The flow has a size, and nothing will happen to it any more.
    pub(super) fn has_seen_all(&self) -> bool {
        matches!(&self.traffic.kind, Kind::Tcp(tcp) if tcp.size.is_some()) && self.ended
    }

    pub(super) fn sample(&mut self, tally: &Tally) -> Outcome<()> {
        let has_ended = tally.has_ended();
        let (mut sample, subflows) = self.observe(tally)?;
        (self.ended, self.count) = (has_ended, tally.count());
        sample.delivered = self.delivered(tally);
        if let Kind::Udp(_) = self.traffic.kind {
            (sample.arrived, sample.datagrams) = (self.count as u32, Some(tally.sent() as u32));
        }
        self.seen.samples.push(sample);
        self.seen.subflows.iter_mut().zip(subflows).for_each(|(all, own)| all.push(own));
        Ok(())
    }

    /// The flow and its subflows, as the kernel knows them. Of one that has ended, the connection may still be there, with
    /// nothing new to tell.
    fn observe(&mut self, tally: &Tally) -> Outcome<(Sample, Vec<Sample>)> {
        let connections = tally.connections();
        let (present, subflows) = match connections.ends().filter(|_| !self.ended) {
            Some(ends) => self.look(ends)?,
            None => (Sample::default(), vec![Sample::default(); self.seen.subflows.len()]),
        };
        let received = present.received + subflows.iter().map(|own| own.received).sum::<u64>();
        self.received = self.received.max(received);
        Ok((connections.with_past(present), subflows))
    }

    /// The connection between these ends, or its subflows.
    fn look(&mut self, ends: Ends) -> Outcome<(Sample, Vec<Sample>)> {
        let [sources, sinks] = self.hosts.ask(ends.source.is_ipv6())?;
        let sampled = |found: Option<&Connection>| found.map_or_else(Sample::default, |it| it.sample(&sinks));
        let first = sources.iter().find(|it| ends.are_of(it));
        let Some(addresses) = self.traffic.subflows() else { return Ok((sampled(first), Vec::new())) };
        self.token = self.token.or(first.and_then(|it| it.token));
        let is_open = |it: &&Connection| it.token.is_some() && it.token == self.token;
        let open = sources.iter().filter(is_open).map(|it| [it.here, it.there]);
        let new: Vec<[SocketAddr; 2]> = open.filter(|ends| !self.known.contains(ends)).collect();
        self.known.extend(new);
        // Whoever listens has one port for all.
        let is_own =
            |it: &&Connection| it.here.port() == ends.source.port() || self.known.contains(&[it.here, it.there]);
        let of = |address: &IpAddr| sampled(sources.iter().filter(is_own).find(|it| it.here.ip() == *address));
        Ok((Sample::default(), addresses.iter().map(of).collect()))
    }

    /// Bytes that the sink has read; until a program tells, at its end, those that the kernel has for it.
    fn delivered(&self, tally: &Tally) -> u64 {
        match tally.delivered() {
            0 if self.traffic.tool().is_some() => self.received,
            read => read,
        }
    }

    /// A second has gone by.
    pub(super) fn tally(&mut self, tally: &Tally) -> Outcome<()> {
        if self.traffic.tool().is_some() {
            self.observe(tally)?;
        }
        // A program's own count, at its end, may be less than the kernel's before.
        let before = self.seen.seconds.last().copied().unwrap_or(0);
        self.seen.seconds.push(self.delivered(tally).max(before));
        Ok(())
    }

    pub(super) fn finish(mut self, tally: &Tally) -> Outcome<Observation> {
        self.seen.episodes = within(&self.traffic.sides[0].space, counters::episodes)?;
        if self.traffic.subflows().is_some() {
            self.seen.multipath = Some(self.multipath()?);
        }
        self.seen.completion = tally.completion.get().copied().map(span);
        self.seen.delivered = self.delivered(tally);
        (self.seen.times, self.seen.sent) = (tally.times(self.count), tally.sent());
        Ok(self.seen)
    }

    /// The host that connects counts what came about.
    fn multipath(&self) -> Outcome<Multipath> {
        let of = |side: usize| within(&self.traffic.sides[side].space, counters::multipath);
        let (source, sink) = (of(0)?, of(1)?);
        let (reinjected, stale, duplicates) = (source.reinjected, source.stale, sink.duplicates);
        let generator = self.traffic.tool().map_or(Generator::Agent, |(_, tool)| tool.generator);
        let opener = if generator.source_listens() { sink } else { source };
        let fallbacks = opener.fallbacks.saturating_sub(generator.plain_connections());
        Ok(Multipath { fallbacks, reinjected, stale, duplicates, ..opener })
    }
}
