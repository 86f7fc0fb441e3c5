//! Samples a flow: the bytes that its sink has read, and the kernel's state of its connections.

use super::flow_counters::{ConnectionAddresses, FlowCounters};
use super::flow_sockets::{FlowSockDiag, sample_of};
use super::{Outcome, netstat, span, within};
use crate::Generator;
use crate::protocol::{FlowResults, FlowSpec, MptcpExtCounters, Sample, Transport};
use sock_diag::SocketInfo;
use std::net::{IpAddr, SocketAddr};

/// Samples a flow.
pub(super) struct FlowSampler<'a> {
    traffic: &'a FlowSpec,
    hosts: FlowSockDiag,
    results: FlowResults,
    /// The token of an MPTCP connection, once its first subflow is known.
    token: Option<u32>,
    /// The addresses of all its subflows so far, by which destroyed ones are identified.
    known: Vec<[SocketAddr; 2]>,
    /// Bytes received by the kernel.
    received: u64,
    /// Datagrams, or responses to requests, that had arrived at the last sample.
    count: u64,
    /// Whether a sample has been taken since the flow's end.
    ended: bool,
}

impl<'a> FlowSampler<'a> {
    pub(super) fn new(traffic: &'a FlowSpec) -> Outcome<Self> {
        let subflows = vec![Vec::new(); traffic.subflows().map_or(0, <[IpAddr]>::len)];
        let results = FlowResults { subflows, ..FlowResults::default() };
        // The one connection of the agent's own source and sink exists as long as they do.
        let may_be_destroyed = traffic.programs().is_some() || traffic.subflows().is_some();
        let hosts = if may_be_destroyed {
            FlowSockDiag::with_destroy_notifications(&traffic.ends)
        } else {
            FlowSockDiag::of(&traffic.ends)
        };
        Ok(Self {
            traffic,
            hosts: hosts?,
            results,
            token: None,
            known: Vec::new(),
            received: 0,
            count: 0,
            ended: false,
        })
    }

    /// Whether the flow has a size and is complete.
    pub(super) fn is_complete(&self) -> bool {
        matches!(&self.traffic.transport, Transport::Tcp(tcp) if tcp.size.is_some()) && self.ended
    }

    pub(super) fn sample(&mut self, counters: &FlowCounters) -> Outcome<()> {
        let has_ended = counters.has_ended();
        let (mut sample, subflows) = self.observe(counters)?;
        (self.ended, self.count) = (has_ended, counters.count());
        sample.delivered = self.delivered(counters);
        if let Transport::Udp(_) = self.traffic.transport {
            (sample.arrived, sample.datagrams) = (self.count as u32, Some(counters.sent() as u32));
        }
        self.results.samples.push(sample);
        self.results.subflows.iter_mut().zip(subflows).for_each(|(samples, sample)| samples.push(sample));
        Ok(())
    }

    /// Samples the flow and its subflows from the kernel's state. After the flow's end its connection may still be
    /// listed, and is ignored.
    fn observe(&mut self, counters: &FlowCounters) -> Outcome<(Sample, Vec<Sample>)> {
        let connections = counters.connections();
        let (present, subflows) = match connections.ends().filter(|_| !self.ended) {
            Some(ends) => self.sample_connection(ends)?,
            None => (Sample::default(), vec![Sample::default(); self.results.subflows.len()]),
        };
        let received = present.received + subflows.iter().map(|sample| sample.received).sum::<u64>();
        self.received = self.received.max(received);
        Ok((connections.with_closed(present), subflows))
    }

    /// Samples the connection between these addresses, or its subflows.
    fn sample_connection(&mut self, ends: ConnectionAddresses) -> Outcome<(Sample, Vec<Sample>)> {
        let [sources, sinks] = self.hosts.dump(ends.source.is_ipv6())?;
        let sampled =
            |socket: Option<&SocketInfo>| socket.map_or_else(Sample::default, |socket| sample_of(socket, &sinks));
        let first = sources.iter().find(|socket| ends.is_source_of(socket));
        let Some(addresses) = self.traffic.subflows() else { return Ok((sampled(first), Vec::new())) };
        self.token = self.token.or(first.and_then(|socket| socket.token));
        let is_open = |socket: &&SocketInfo| socket.token.is_some() && socket.token == self.token;
        let open_addresses = sources.iter().filter(is_open).map(|socket| [socket.local, socket.remote]);
        let new: Vec<[SocketAddr; 2]> = open_addresses.filter(|ends| !self.known.contains(ends)).collect();
        self.known.extend(new);
        // A listener has one port for all subflows.
        let is_own = |socket: &&SocketInfo| {
            socket.local.port() == ends.source.port() || self.known.contains(&[socket.local, socket.remote])
        };
        let algorithm = |socket: &SocketInfo| (socket.local.ip(), socket.congestion.clone());
        let known = |(_, name): &(IpAddr, String)| !name.is_empty();
        self.results.congestion_controls.extend(sources.iter().filter(is_own).map(algorithm).filter(known));
        let sample_of_address =
            |address: &IpAddr| sampled(sources.iter().filter(is_own).find(|socket| socket.local.ip() == *address));
        Ok((Sample::default(), addresses.iter().map(sample_of_address).collect()))
    }

    /// Bytes that the sink has read; for an external program that has not ended, the bytes that the kernel has received for
    /// it.
    fn delivered(&self, counters: &FlowCounters) -> u64 {
        match counters.delivered() {
            0 if self.traffic.programs().is_some() => self.received,
            read => read,
        }
    }

    /// Records the delivered bytes at the end of a second.
    pub(super) fn counters(&mut self, counters: &FlowCounters) -> Outcome<()> {
        if self.traffic.programs().is_some() {
            self.observe(counters)?;
        }
        // A program's own count, at its end, may be less than the kernel's earlier count.
        let previous = self.results.delivered_by_second.last().copied().unwrap_or(0);
        self.results.delivered_by_second.push(self.delivered(counters).max(previous));
        Ok(())
    }

    pub(super) fn finish(mut self, counters: &FlowCounters) -> Outcome<FlowResults> {
        self.results.tcp_ext = within(&self.traffic.ends[0].netns, netstat::tcp_ext)?;
        if self.traffic.subflows().is_some() {
            self.results.mptcp_ext = Some(self.mptcp_ext()?);
        }
        self.results.completion = counters.completion.get().copied().map(span);
        self.results.delivered = self.delivered(counters);
        (self.results.times, self.results.sent) = (counters.times(self.count), counters.sent());
        Ok(self.results)
    }

    /// The MPTCP counters of both hosts; those of connections are taken from the host that connects.
    fn mptcp_ext(&self) -> Outcome<MptcpExtCounters> {
        let counters_of = |side: usize| within(&self.traffic.ends[side].netns, netstat::mptcp_ext);
        let (source, sink) = (counters_of(0)?, counters_of(1)?);
        let (reinjected, stale, duplicates) = (source.reinjected, source.stale, sink.duplicates);
        let generator = self.traffic.programs().map_or(Generator::Agent, |(_, programs)| programs.generator);
        let opener = if generator.source_listens() { sink } else { source };
        let fallbacks = opener.fallbacks.saturating_sub(generator.plain_connections());
        Ok(MptcpExtCounters { fallbacks, reinjected, stale, duplicates, ..opener })
    }
}
