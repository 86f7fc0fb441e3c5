//! The status as Prometheus reads it: OpenMetrics text, base units (seconds, bytes, ratios), counters from the start.

use crate::status::{Path, State, Status};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::{Registry, Unit};
use std::fmt;
use std::sync::Arc;

/// The media type of [`text`].
pub const MEDIA_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The metrics of one moment.
#[must_use]
pub fn text(status: &Arc<Status>) -> String {
    let mut registry = Registry::with_prefix("ropewalk");
    registry.register_collector(Box::new(Snapshot(Arc::clone(status))));
    let mut text = String::new();
    // A String takes everything.
    encode(&mut text, &registry).expect("writing to a string does not fail");
    text
}

#[derive(Debug)]
struct Snapshot(Arc<Status>);

/// A metric of a path: name, help, unit, and the value.
type Metric<T> = (&'static str, &'static str, Option<Unit>, fn(&Path) -> T);

const GAUGES: &[Metric<f64>] = &[
    ("path_up", "1 while the path works", None, |path| f64::from(u8::from(path.state == State::Up))),
    ("path_rtt", "Smoothed round-trip time", Some(Unit::Seconds), |path| path.rtt_ms.map_or(f64::NAN, |ms| ms / 1e3)),
    ("path_loss", "Share of recent packets lost", Some(Unit::Ratios), |path| path.loss),
    ("path_share", "Share of what is sent", Some(Unit::Ratios), |path| path.share),
    ("path_mtu", "Largest datagram known to pass", Some(Unit::Bytes), |path| f64::from(path.mtu_bytes)),
    ("path_in_flight", "Sent and not acknowledged", Some(Unit::Bytes), |path| path.in_flight_bytes as f64),
];

const COUNTERS: &[Metric<u64>] = &[
    ("path_sent", "Sent", Some(Unit::Bytes), |path| path.sent.bytes),
    ("path_received", "Received", Some(Unit::Bytes), |path| path.received.bytes),
    ("path_sent_packets", "Datagrams sent", None, |path| path.sent.packets),
    ("path_received_packets", "Datagrams received", None, |path| path.received.packets),
    ("path_lost_packets", "Datagrams lost", None, |path| path.lost_packets),
    ("path_marked_packets", "Datagrams that met congestion marks", None, |path| path.marked_packets),
    ("path_failures", "Times that the path failed", None, |path| path.failures),
];

impl Collector for Snapshot {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        for (name, help, unit, value) in GAUGES {
            self.each_path(&mut encoder, (name, help, unit.as_ref()), |path| ConstGauge::new(value(path)))?;
        }
        for (name, help, unit, value) in COUNTERS {
            self.each_path(&mut encoder, (name, help, unit.as_ref()), |path| ConstCounter::new(value(path)))?;
        }
        self.peers(&mut encoder)?;
        self.tunnel(&mut encoder)
    }
}

impl Snapshot {
    fn each_path<M: EncodeMetric>(
        &self,
        encoder: &mut DescriptorEncoder<'_>,
        (name, help, unit): (&str, &str, Option<&Unit>),
        metric: impl Fn(&Path) -> M,
    ) -> fmt::Result {
        let kind = match self.0.paths().next() {
            Some((_, path)) => metric(path).metric_type(),
            None => return Ok(()),
        };
        let mut family = encoder.encode_descriptor(name, help, unit, kind)?;
        for (peer, path) in self.0.paths() {
            let key = peer.public_key.as_deref().unwrap_or("");
            let labels = [("interface", self.0.interface.name.as_str()), ("peer", key), ("path", path.name.as_str())];
            metric(path).encode(family.encode_family(&labels)?)?;
        }
        Ok(())
    }

    fn peers(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        type Numbers = [(&'static str, &'static str, Option<Unit>, fn(&crate::status::Peer) -> f64); 4];
        let numbers: Numbers = [
            ("handshake_age", "Since the latest handshake", Some(Unit::Seconds), |it| {
                it.handshake_ms.map_or(f64::NAN, |ms| ms / 1e3)
            }),
            ("entrance_queue", "Waits to be sent", Some(Unit::Bytes), |it| it.entrance.queued_bytes as f64),
            ("reordering_packets", "Packets that wait for their turn", None, |it| it.reordering.depth_packets as f64),
            ("reordering_hold", "The longest that a packet may wait", Some(Unit::Seconds), |it| {
                it.reordering.hold_ms / 1e3
            }),
        ];
        for (name, help, unit, value) in &numbers {
            let kind = ConstGauge::new(0.0).metric_type();
            let mut family = encoder.encode_descriptor(name, help, unit.as_ref(), kind)?;
            for peer in &self.0.peers {
                let key = peer.public_key.as_deref().unwrap_or("");
                let labels = [("interface", self.0.interface.name.as_str()), ("peer", key)];
                ConstGauge::new(value(peer)).encode(family.encode_family(&labels)?)?;
            }
        }
        Ok(())
    }

    fn tunnel(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let kind = ConstCounter::new(0_u64).metric_type();
        let mut family = encoder.encode_descriptor("dropped_packets", "Packets dropped, by reason", None, kind)?;
        for drop in &self.0.drops {
            let labels = [("interface", self.0.interface.name.as_str()), ("reason", drop.reason.as_str())];
            ConstCounter::new(drop.packets).encode(family.encode_family(&labels)?)?;
        }
        let kind = ConstGauge::new(0.0).metric_type();
        let family = encoder.encode_descriptor("uptime", "Since the start", Some(&Unit::Seconds), kind)?;
        ConstGauge::new(self.0.uptime_s).encode(family)
    }
}
