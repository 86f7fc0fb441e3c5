//! The defaults of keys for the JSON Schema, from the constants that resolving uses.

use crate::model::{Host, Quic, Relay, Ropewalk};
use crate::resolve::{multipath, network, traffic, tunnel, video};
use link::{
    CakeConfig, CoDelConfig, DualPi2Config, FqCodelConfig, PieConfig, QueueConfig, QueueDiscipline, QueueLimit,
    RedConfig,
};
use machine::TunnelOptions;
use serde_json::{Value, json};
use units::Span;

/// A table of the schema, a key, and its default.
type KeyDefault = (&'static str, &'static str, Value);

/// Defaults that always hold.
pub(crate) fn fixed() -> Vec<KeyDefault> {
    let mut entries = vec![("scenario", "seeds", json!([1])), ("path", "mtu", bytes(network::DEFAULT_MTU))];
    for table in ["path", "link"] {
        let zero = [("delay", "0s"), ("jitter", "0s"), ("loss", "0%"), ("overhead", "0b")];
        let unimpaired = ["duplicate", "corrupt", "reorder"].map(|key| (key, "0%"));
        entries.extend(zero.into_iter().chain(unimpaired).map(|(key, zero)| (table, key, json!(zero))));
        entries.push((table, "local", json!(false)));
    }
    // The types of these keys define their own defaults.
    let defaults = [
        ("queue", "discipline", "droptail"),
        ("tunnel", "mode", "mpt"),
        ("resequence", "late", "drop"),
        ("flow", "kind", "tcp"),
        ("event", "direction", "both"),
        ("requests", "connection", "persistent"),
        ("video", "kind", "stored"),
    ];
    entries.extend(defaults.map(|(table, key, default)| (table, key, json!(default))));
    entries.extend([("burst-loss", "bad", json!("100%")), ("burst-loss", "good", json!("0%"))]);
    entries.push(("handover", "outage", json!("0s")));
    entries.extend(queue());
    entries.extend(of_tunnel());
    entries.extend(host());
    entries.extend([("flow", "start", json!("0s")), ("flow", "start_within", json!("0s"))]);
    entries.extend([("flow", "congestion", json!(traffic::CONGESTION)), ("subflow", "join", json!("0s"))]);
    entries.extend([("requests", "think", json!("0s")), ("mptcp", "stack", json!("upstream"))]);
    let quic = Quic::default();
    entries.extend([("quic", "streams", json!(quic.streams)), ("quic", "undo", json!(quic.undo))]);
    entries.push(("quic", "loss_thresholds", json!("adaptive")));
    entries.extend([("video", "fps", json!(video::FPS)), ("video", "intra", json!(video::INTRA))]);
    entries.extend(["variation", "group_variation"].map(|key| ("video", key, json!(video::VARIATION))));
    let times = [("startup", video::STARTUP), ("ahead", video::AHEAD), ("latency", video::LATENCY)];
    entries.extend(times.map(|(key, span)| ("video", key, time(span))));
    entries
}

/// A default that depends on another key: table, key, that other key, and the default for each of its values.
type Dependent = (&'static str, &'static str, &'static str, Vec<(&'static str, Value)>);

/// The defaults that depend on another key.
pub(crate) fn dependent() -> Vec<Dependent> {
    let disciplines = [
        ("droptail", QueueDiscipline::DropTail),
        ("drophead", QueueDiscipline::DropHead),
        ("codel", QueueDiscipline::CoDel(CoDelConfig::DEFAULT)),
        ("red", QueueDiscipline::Red(RedConfig { min: 0, max: 1, probability: 0.0, weight: 1.0, hard_drop: true })),
        ("pie", QueueDiscipline::Pie(PieConfig::default())),
        ("dualpi2", QueueDiscipline::DualPi2(DualPi2Config::default())),
        ("fq-codel", QueueDiscipline::FqCodel(FqCodelConfig::default())),
        ("cake", QueueDiscipline::Cake(CakeConfig::default())),
    ];
    let limit = |discipline| match QueueConfig::new(discipline).limit {
        QueueLimit::Packets(packets) => json!(format!("{packets}p")),
        QueueLimit::Bytes(bytes) => json!(format!("{bytes}b")),
        QueueLimit::Time(span) => time(span),
    };
    let targets = [("codel", CoDelConfig::DEFAULT.target), ("fq-codel", FqCodelConfig::default().codel.target)];
    let (pie, dual) = (PieConfig::default(), DualPi2Config::default());
    let targets = targets.into_iter().chain([("pie", pie.target), ("dualpi2", dual.target)]);
    let of_both = |pie: Value, dual: Value| vec![("pie", pie), ("dualpi2", dual)];
    vec![
        ("queue", "limit", "discipline", disciplines.map(|(name, discipline)| (name, limit(discipline))).into()),
        (
            "queue",
            "ecn",
            "discipline",
            disciplines.map(|(name, discipline)| (name, json!(discipline.default_ecn()))).into(),
        ),
        ("queue", "target", "discipline", targets.map(|(name, span)| (name, time(span))).collect()),
        ("queue", "tupdate", "discipline", of_both(time(pie.tupdate), time(dual.tupdate))),
        ("queue", "alpha", "discipline", of_both(json!(pie.alpha), json!(dual.alpha))),
        ("queue", "beta", "discipline", of_both(json!(pie.beta), json!(dual.beta))),
        ("tunnel", "mtu", "mode", vec![("mpt", bytes(tunnel::MPT_MTU))]),
        (
            "tunnel",
            "scheduler",
            "mode",
            vec![("mpt", json!(tunnel::MPT_SCHEDULER)), ("ropewalk", json!(TunnelOptions::default().scheduler.name))],
        ),
        (
            "mptcp",
            "dss_option",
            "stack",
            vec![
                ("upstream", bytes(multipath::UPSTREAM_DSS_OPTION_BYTES)),
                ("out-of-tree", bytes(multipath::OUT_OF_TREE_DSS_OPTION_BYTES)),
            ],
        ),
        (
            "mptcp",
            "opportunistic_retransmission",
            "stack",
            vec![("upstream", json!(false)), ("out-of-tree", json!(true))],
        ),
        (
            "flow",
            "scheduler",
            "mptcp.stack",
            vec![
                ("upstream", json!(multipath::UPSTREAM_SCHEDULER)),
                ("out-of-tree", json!(multipath::OUT_OF_TREE_SCHEDULER)),
            ],
        ),
    ]
}

fn queue() -> Vec<KeyDefault> {
    let (dual, fq_codel) = (DualPi2Config::default(), FqCodelConfig::default());
    let keys = [
        ("interval", time(CoDelConfig::DEFAULT.interval)),
        ("flows", json!(fq_codel.flows)),
        ("quantum", bytes(fq_codel.quantum)),
        ("coupling_factor", json!(dual.coupling_factor)),
        ("step_thresh", time(dual.step_thresh)),
        ("classic_protection", json!(format!("{}%", dual.classic_protection * 100.0))),
        ("rtt", time(CakeConfig::default().rtt)),
        ("probability", json!(format!("{}%", RedConfig::PROBABILITY * 100.0))),
        ("weight", json!(RedConfig::WEIGHT)),
        ("hard_drop", json!(true)),
    ];
    keys.map(|(key, value)| ("queue", key, value)).into()
}

fn of_tunnel() -> Vec<KeyDefault> {
    let (options, relay) = (TunnelOptions::default(), Relay::default());
    let keys = [
        ("kind", json!("mpt-gre")),
        ("first", json!(0)),
        ("stray_packets", json!(0)),
        ("congestion", json!(options.congestion.name)),
        ("retransmit", json!(options.retransmit)),
        ("ack_filter", json!(options.ack_filter)),
        ("in_order", json!(options.in_order)),
        ("late", json!(if options.deliver_late { "deliver" } else { "drop" })),
        ("max_reorder_timeout", time(options.max_reorder_timeout)),
        ("probe_interval", time(options.probe_interval)),
        ("codel_target", time(options.codel_target)),
        ("codel_interval", time(options.codel_interval)),
        ("memory", json!(format!("{}MiB", options.memory_bytes >> 20))),
        ("offload", json!(Ropewalk::default().offload)),
        ("bundles", json!(Ropewalk::default().bundles)),
        ("relay", json!("off")),
        ("relay_congestion", json!(relay.congestion.name)),
        ("relay_rate", json!(relay.rate.to_string())),
        ("relay_delay", time(relay.delay)),
    ];
    keys.map(|(key, value)| ("tunnel", key, value)).into()
}

fn host() -> Vec<KeyDefault> {
    let host = Host::default();
    let rmem = host.receive_buffer;
    let keys = [
        ("profile", json!("linux")),
        ("initial_window", json!(host.initial_window)),
        ("ip", json!(4)),
        ("timestamps", json!(host.timestamps)),
        ("sack", json!(host.sack)),
        ("ecn", json!(host.ecn)),
        ("quick_ack", json!(host.quick_ack)),
        ("gro", json!(host.gro)),
        ("receive_buffer", json!([rmem.min, rmem.default, rmem.max].map(|bytes| format!("{bytes}b")))),
        ("send_buffer", json!(format!("{}b", host.send_buffer))),
        ("initial_send_buffer", json!(format!("{}b", host.initial_send_buffer))),
        ("slow_start_after_idle", json!(host.slow_start_after_idle)),
        ("early_retrans", json!(host.early_retrans)),
        ("mptcp_send_buffer", json!("sum")),
        ("pacing", json!(host.pacing)),
        ("tso", json!(host.tso)),
        ("small_queues", json!(host.small_queues)),
        ("reordering", json!(host.reordering)),
        ("max_reordering", json!(host.max_reordering)),
        ("tick", time(host.tick)),
        ("recovery", json!("rack")),
        ("handshake", json!(host.handshake)),
        ("initial_rto", time(host.initial_rto)),
    ];
    keys.map(|(key, value)| ("host", key, value)).into()
}

fn time(span: Span) -> Value {
    json!(span.to_string())
}

fn bytes(bytes: u32) -> Value {
    json!(format!("{bytes}b"))
}
