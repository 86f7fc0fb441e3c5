//! Samples a flow: what its sink has got, and the state of the kernel's connections that carry it.

use super::tcp_info::{self, Connection, Questioner};
use super::traffic::Flow;
use super::{Outcome, counters, span, within};
use crate::Generator;
use crate::plan::{Multipath, Observation, Sample, Traffic};
use std::net::SocketAddr;

/// Samples one flow.
pub(super) struct Watcher<'a> {
    traffic: &'a Traffic,
    /// Of the source's host, of the sink's.
    hosts: [Questioner; 2],
    seen: Observation,
    /// Of an MPTCP connection, once its first subflow has been seen.
    token: Option<u32>,
    /// Both ends of all its subflows so far, by which they are known when they are gone.
    known: Vec<[SocketAddr; 2]>,
    /// The kernel's count of what the sink has got.
    received: u64,
    /// A sample has been taken after the flow's end.
    ended: bool,
}

impl<'a> Watcher<'a> {
    pub(super) fn new(traffic: &'a Traffic) -> Outcome<Self> {
        let [source, sink] = &traffic.sides;
        let hosts = [within(&source.space, Questioner::new)?, within(&sink.space, Questioner::new)?];
        let subflows = vec![Vec::new(); traffic.subflows.as_ref().map_or(0, Vec::len)];
        let seen = Observation { subflows, ..Observation::default() };
        Ok(Self { traffic, hosts, seen, token: None, known: Vec::new(), received: 0, ended: false })
    }

    /// The flow has a size, and nothing will happen to it any more.
    pub(super) fn has_seen_all(&self) -> bool {
        self.traffic.size.is_some() && self.ended
    }

    /// Of a flow that has ended, the connection may still be there, with nothing new to tell.
    pub(super) fn sample(&mut self, flow: &dyn Flow) -> Outcome<()> {
        let had_ended = std::mem::replace(&mut self.ended, flow.has_ended());
        let (mut sample, mut subflows) = (Sample::default(), vec![Sample::default(); self.seen.subflows.len()]);
        if let Some(source) = flow.source().filter(|_| !had_ended) {
            self.look(source, &mut sample, &mut subflows)?;
        }
        let received = sample.received + subflows.iter().map(|own| own.received).sum::<u64>();
        self.received = self.received.max(received);
        sample.delivered = flow.delivered().unwrap_or(self.received);
        self.seen.samples.push(sample);
        self.seen.subflows.iter_mut().zip(subflows).for_each(|(all, own)| all.push(own));
        Ok(())
    }

    fn look(&mut self, source: SocketAddr, sample: &mut Sample, subflows: &mut [Sample]) -> Outcome<()> {
        let [sources, sinks] = [self.hosts[0].ask(source.is_ipv6())?, self.hosts[1].ask(source.is_ipv6())?];
        let first = sources.iter().find(|it| it.here == source);
        let Some(addresses) = &self.traffic.subflows else {
            first.into_iter().for_each(|it| take(sample, it, &sinks));
            return Ok(());
        };
        self.token = self.token.or(first.and_then(|it| it.token));
        let is_open = |it: &&Connection| it.token.is_some() && it.token == self.token;
        let open = sources.iter().filter(is_open).map(|it| [it.here, it.there]);
        let new: Vec<[SocketAddr; 2]> = open.filter(|ends| !self.known.contains(ends)).collect();
        self.known.extend(new);
        // Whoever listens has one port for all.
        let is_own = |it: &&Connection| it.here.port() == source.port() || self.known.contains(&[it.here, it.there]);
        for (address, own) in addresses.iter().zip(subflows) {
            let mut all = sources.iter().filter(is_own);
            all.find(|it| it.here.ip() == *address).into_iter().for_each(|it| take(own, it, &sinks));
        }
        Ok(())
    }

    pub(super) fn finish(mut self, flow: &dyn Flow) -> Outcome<Observation> {
        self.seen.episodes = within(&self.traffic.sides[0].space, counters::episodes)?;
        if self.traffic.subflows.is_some() {
            self.seen.multipath = Some(self.multipath()?);
        }
        self.seen.completion = flow.completion().map(span);
        self.seen.delivered = flow.delivered().unwrap_or(self.received);
        Ok(self.seen)
    }

    /// The host that connects counts what came about.
    fn multipath(&self) -> Outcome<Multipath> {
        let of = |side: usize| within(&self.traffic.sides[side].space, counters::multipath);
        let (source, sink) = (of(0)?, of(1)?);
        let (reinjected, stale, duplicates) = (source.reinjected, source.stale, sink.duplicates);
        let generator = self.traffic.tool.as_ref().map_or(Generator::Agent, |tool| tool.generator);
        let opener = if generator.source_listens() { sink } else { source };
        let fallbacks = opener.fallbacks.saturating_sub(generator.plain_connections());
        Ok(Multipath { fallbacks, reinjected, stale, duplicates, ..opener })
    }
}

/// What is known of the source's connection, and of its other end.
fn take(sample: &mut Sample, source: &Connection, sinks: &[Connection]) {
    sample.tcp = Some(tcp_info::read(&source.info));
    let other = sinks.iter().find(|it| it.here == source.there && it.there == source.here);
    sample.arrived = other.map_or(0, |it| it.info.data_segs_in);
    sample.received = other.map_or(0, |it| it.info.bytes_received);
}
