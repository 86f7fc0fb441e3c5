//! Samples one flow, and tells at its end what was seen.

use super::tcp_info::{Connection, Hosts, take};
use super::traffic::Flow;
use super::{Outcome, counters, span, within};
use crate::plan::{Kind, Multipath, Observation, Sample, Tcp, Traffic};
use std::net::{IpAddr, SocketAddr};

/// Samples one flow.
pub(super) struct Watcher<'a> {
    traffic: &'a Traffic,
    hosts: Hosts,
    seen: Observation,
    /// A sample has been taken after the flow's end.
    ended: bool,
}

impl<'a> Watcher<'a> {
    pub(super) fn new(traffic: &'a Traffic) -> Outcome<Self> {
        let subflows = vec![Vec::new(); addresses(traffic).map_or(0, <[IpAddr]>::len)];
        let seen = Observation { subflows, ..Observation::default() };
        Ok(Self { traffic, hosts: Hosts::of(&traffic.sides)?, seen, ended: false })
    }

    /// The flow has a size, and nothing will happen to it any more.
    pub(super) fn has_seen_all(&self) -> bool {
        matches!(self.traffic.kind, Kind::Tcp(Tcp { size: Some(_), .. })) && self.ended
    }

    /// Of a flow that has ended, the connection is still there, with nothing new to tell.
    pub(super) fn sample(&mut self, flow: &Flow) -> Outcome<()> {
        let had_ended = std::mem::replace(&mut self.ended, flow.has_ended());
        let connections = flow.connections();
        let mut sample = Sample::default();
        let mut subflows = vec![Sample::default(); self.seen.subflows.len()];
        if let Some(ends) = connections.ends().filter(|_| !had_ended) {
            self.look(ends, &mut sample, &mut subflows)?;
        }
        let mut sample = connections.with_past(sample);
        sample.delivered = flow.delivered();
        if let Kind::Udp(_) = self.traffic.kind {
            (sample.arrived, sample.datagrams) = (flow.arrived() as u32, Some(flow.sent() as u32));
        }
        self.seen.samples.push(sample);
        self.seen.subflows.iter_mut().zip(subflows).for_each(|(all, own)| all.push(own));
        Ok(())
    }

    /// What the kernel knows of the connection between these ends, or of its subflows.
    fn look(&self, [source, sink]: [SocketAddr; 2], whole: &mut Sample, subflows: &mut [Sample]) -> Outcome<()> {
        let [sources, sinks] = self.hosts.ask(sink.is_ipv6())?;
        match addresses(self.traffic) {
            None => take(whole, &sources, &sinks, |it| it.here == source && it.there == sink),
            Some(addresses) => {
                for (address, own) in addresses.iter().zip(subflows) {
                    let is_it = |it: &Connection| it.here.ip() == *address && it.there.port() == sink.port();
                    take(own, &sources, &sinks, is_it);
                }
            }
        }
        Ok(())
    }

    /// A second has gone by.
    pub(super) fn tally(&mut self, flow: &Flow) {
        self.seen.seconds.push(flow.delivered());
    }

    pub(super) fn finish(mut self, flow: &Flow) -> Outcome<Observation> {
        self.seen.episodes = within(&self.traffic.sides[0].space, counters::episodes)?;
        if addresses(self.traffic).is_some() {
            let [source, sink] = self.traffic.sides.each_ref().map(|side| within(&side.space, counters::multipath));
            self.seen.multipath = Some(Multipath { duplicates: sink?.duplicates, ..source? });
        }
        self.seen.completion = flow.completion().map(span);
        (self.seen.times, self.seen.sent) = (flow.times(), flow.sent());
        Ok(self.seen)
    }
}

/// MPTCP: the source's address on each path.
fn addresses(traffic: &Traffic) -> Option<&[IpAddr]> {
    match &traffic.kind {
        Kind::Tcp(tcp) => tcp.subflows.as_deref(),
        Kind::Udp(_) => None,
    }
}
