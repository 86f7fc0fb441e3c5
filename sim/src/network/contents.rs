//! What packets carry, and which of them do not arrive.

use crate::datagrams::Datagrams;
use crate::packet::{Body, Content, Packet};
use crate::tunnel::in_flight::InFlight;
use scenario::model::{Experiment, Flow};
use world::{LossCause, Slab, Store};

/// The contents of packets, and counters of those that do not arrive.
#[derive(Debug)]
pub(crate) struct Contents {
    /// The datagrams of hosted stacks.
    pub datagrams: Datagrams,
    /// The datagrams of a Ropewalk tunnel.
    pub tunnel_datagrams: InFlight,
    /// Data packets dropped, lost or corrupted: by flow, then by subflow.
    pub dropped: Vec<Vec<u64>>,
    /// Packets in the direction of the data that arrived corrupted, by path.
    pub corrupted: Vec<u64>,
}

impl Contents {
    /// No contents, for the experiment's flows and further ones of one subflow each.
    pub(crate) fn new(experiment: &Experiment, flows: usize, paths: usize) -> Self {
        let mut dropped: Vec<Vec<u64>> = experiment.flows.iter().map(|flow| vec![0; subflows(flow)]).collect();
        dropped.resize(flows, vec![0]);
        Self {
            datagrams: Datagrams::default(),
            tunnel_datagrams: InFlight::default(),
            dropped,
            corrupted: vec![0; paths],
        }
    }

    /// Checks that it has exactly the contents of the packets in the slab.
    pub(super) fn assert_conserved(&self, slab: &Slab<Content>) {
        let hosted = slab.count(|content| matches!(content.body, Body::Datagram { .. }));
        assert_eq!(self.datagrams.len(), hosted, "datagrams of hosted stacks, and those in the slab");
        let tunnel = slab.count(|content| matches!(content.body, Body::TunnelDatagram(_)));
        assert_eq!(self.tunnel_datagrams.len(), tunnel, "datagrams that the tunnel sent, and those in the slab");
    }
}

impl Store for Contents {
    type Content = Content;

    fn duplicate(&mut self, content: &mut Content) {
        match &mut content.body {
            Body::TunnelDatagram(id) => self.tunnel_datagrams.duplicate(*id),
            Body::Datagram { id, .. } => *id = self.datagrams.duplicate(*id),
            _ => {}
        }
    }

    fn discard(&mut self, packet: &Packet, is_data: bool, cause: LossCause) {
        if cause == LossCause::Checksum {
            self.corrupted[usize::from(packet.path)] += u64::from(is_data);
        }
        match packet.content.body {
            Body::TunnelDatagram(id) => return self.tunnel_datagrams.discard(id),
            Body::Datagram { id, .. } => drop(self.datagrams.remove(id)),
            _ => {}
        }
        if is_data && !matches!(packet.content.body, Body::Stray) {
            let subflow_drops = &mut self.dropped[usize::from(packet.flow)];
            let subflow = usize::from(packet.connection).min(subflow_drops.len() - 1);
            subflow_drops[subflow] += 1;
        }
    }
}

/// Number of a flow's subflows; 1 for a flow over one path.
fn subflows(flow: &Flow) -> usize {
    flow.kind.subflows().len().max(1)
}
