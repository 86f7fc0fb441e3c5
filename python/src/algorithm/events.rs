//! Events of a path as Python's values: the fields of [`control::PathEvent`]. Times are nanoseconds, windows packets, rates
//! bits per second.

use pyo3::prelude::*;
use units::Span;

/// A class of values that do not change, with a `repr` that shows its fields.
macro_rules! values {
    ($($(#[$attribute:meta])* $name:ident { $($(#[$described:meta])* $field:ident: $kind:ty,)* })*) => {$(
        $(#[$attribute])*
        #[pyclass(frozen, get_all, module = "ropewalk.algorithm")]
        #[derive(Clone, Debug)]
        pub(crate) struct $name { $($(#[$described])* pub(crate) $field: $kind,)* }

        #[pymethods]
        impl $name {
            fn __repr__(&self) -> String {
                let fields: Vec<String> = vec![$(format!(concat!(stringify!($field), "={}"), shown(&self.$field)),)*];
                format!("{}({})", stringify!($name), fields.join(", "))
            }
        }
    )*};
}

/// A value as Python would show it.
pub(crate) fn shown(value: &dyn std::fmt::Debug) -> String {
    let text = format!("{value:?}");
    match text.as_str() {
        "true" => "True".to_owned(),
        "false" => "False".to_owned(),
        _ => match text.strip_prefix("Some(").and_then(|rest| rest.strip_suffix(')')) {
            Some(inner) => inner.to_owned(),
            None => text,
        },
    }
}

values! {
    /// The path can be used from now on.
    PathUp {
        /// Payload of a full packet, bytes.
        mss: u32,
        /// Initial window, packets.
        initial_window: u32,
        /// RTT of the handshake, if there is one.
        rtt_ns: Option<u64>,
        /// The host's timer tick.
        tick_ns: u64,
        /// Maximum window, packets.
        cwnd_clamp: u32,
        /// How a window is reduced to the threshold.
        reduction: Reduction,
        /// Seed for `random.Random`, drawn from the run's random stream.
        seed: u64,
    }
    /// The path was removed.
    PathDown {}
    /// An acknowledgement; after all other events that it causes. Counts are packets.
    Ack {
        /// Newly delivered, cumulatively or selectively.
        acked: u32,
        /// Removed from the head of the send queue or newly SACKed.
        pkts_acked: u32,
        /// Newly marked lost.
        lost: u32,
        /// Newly reported as CE-marked.
        marked: u32,
        /// Sent since the last acknowledgement, or since the episode began if that is later.
        sent: u32,
        /// In flight before this acknowledgement.
        prior_in_flight: u32,
        /// In flight now.
        in_flight: u32,
        /// Time until the pacer lets the next packet leave; zero if it may leave now.
        until_departure_ns: u64,
        /// RTT of the newest packet that was acknowledged and never retransmitted.
        rtt_ns: Option<u64>,
        /// Smoothed RTT (RFC 6298).
        srtt_ns: Option<u64>,
        /// Minimum RTT in the connection's filter.
        min_rtt_ns: Option<u64>,
        /// Delay from sender to receiver of the newest packet delivered.
        one_way_delay_ns: Option<u64>,
        /// Delivery-rate sample, if this acknowledgement made a valid one.
        rate_sample: Option<RateSample>,
        /// Send state of the newest packet delivered.
        newest_delivered: Option<SendState>,
        /// Send state of the newest packet marked lost.
        newest_lost: Option<SendState>,
        /// Packets ever delivered on this path, including these.
        delivered: u64,
        /// Cumulative acknowledgement number, packets.
        snd_una: u64,
        /// Number of the next new packet.
        snd_nxt: u64,
        /// Whether `snd_una` moved.
        una_advanced: bool,
        /// Whether header prediction took it: it advances, with the same window, without SACK blocks and echoes.
        is_predicted: bool,
        /// Whether the congestion window limited the last window of data.
        cwnd_limited: bool,
        /// Whether this acknowledgement may raise the window.
        may_raise_cwnd: bool,
        /// The state before this acknowledgement.
        prior_ca_state: CaState,
        /// The state after this acknowledgement.
        ca_state: CaState,
    }
    /// A delivery-rate sample.
    RateSample {
        /// Packets delivered over `interval_ns`.
        delivered: u32,
        /// The longer of the send and the acknowledgement interval.
        interval_ns: u64,
        /// Packets delivered when the newest packet of this acknowledgement was sent.
        prior_delivered: u64,
        /// Whether the path was application-limited.
        app_limited: bool,
        /// Whether the interval probably includes the wait for a delayed acknowledgement.
        ack_delayed: bool,
    }
    /// State of a path when a packet was last sent, and counts since then.
    SendState {
        /// Packets in flight at that time, including this packet.
        tx_in_flight: u32,
        /// Packets marked lost since then.
        lost: u32,
        /// Packets reported as CE-marked since then.
        marked: u32,
        /// Whether the path was application-limited at that time.
        app_limited: bool,
    }
    /// The content of an acknowledgement, before the events that it may cause; only if it may cause one.
    AckProgress {
        /// Packets newly delivered.
        acked: u32,
        /// Packets removed from the head of the send queue or newly SACKed.
        pkts_acked: u32,
        /// Packets newly reported as CE-marked.
        marked: u32,
        /// Packets in flight, before any is found lost.
        in_flight: u32,
        /// RTT of the newest packet that was acknowledged and never retransmitted.
        rtt_ns: Option<u64>,
        /// Delay from sender to receiver of the newest packet delivered; None if the two share no clock.
        one_way_delay_ns: Option<u64>,
        /// Cumulative acknowledgement number, packets.
        snd_una: u64,
        /// Number of the next new packet.
        snd_nxt: u64,
        /// Whether header prediction took it: it advances, with the same window, without SACK blocks and echoes.
        is_predicted: bool,
    }
    /// Congestion: one event per episode.
    Congestion {
        /// The sign of congestion.
        cause: Cause,
        /// False for a timeout within an episode in which the window was already reduced.
        reduce_cwnd: bool,
        /// Packets in flight without lost ones.
        in_flight: u32,
        /// Whether a timer found it, not an acknowledgement.
        by_timer: bool,
    }
    /// The latest reduction was spurious.
    SpuriousLoss {}
    Recovered { to_ssthresh: bool, }
    /// The application writes after the path was idle for longer than the retransmission timeout: the window restarts
    /// (RFC 2861).
    WindowRestart {
        /// Time since the last packet was sent.
        idle_ns: u64,
        /// The retransmission timeout at that moment.
        rto_ns: u64,
    }
    /// A packet is sent and nothing is in flight.
    IdleRestart {
        /// Time since the last packet was sent.
        idle_ns: u64,
        /// The retransmission timeout at that moment.
        rto_ns: u64,
        /// Whether the application had nothing to send.
        app_limited: bool,
    }
    ApplicationLimited { cwnd_used: u32, }
    /// The path blocks the others of its connection: halve its window.
    Penalise {}
    MssChanged { mss: u32, }
}

/// An enumeration of `control`, with Python's names.
macro_rules! enumeration {
    ($name:ident { $($variant:ident = $python:literal,)* }) => {
        #[pyclass(frozen, eq, ord, eq_int, hash, module = "ropewalk.algorithm")]
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub(crate) enum $name { $(#[pyo3(name = $python)] $variant,)* }

        impl From<control::$name> for $name {
            fn from(value: control::$name) -> Self {
                match value { $(control::$name::$variant => Self::$variant,)* }
            }
        }
    };
}

enumeration!(Cause {
    Loss = "LOSS",
    Timeout = "TIMEOUT",
    EcnMark = "ECN_MARK",
    LocalDrop = "LOCAL_DROP",
    TlpRecovery = "TLP_RECOVERY",
    Requested = "REQUESTED",
});
enumeration!(CaState {
    Open = "OPEN",
    Disorder = "DISORDER",
    Cwr = "CWR",
    Recovery = "RECOVERY",
    Loss = "LOSS",
});
enumeration!(Reduction {
    Proportional = "PROPORTIONAL",
    Halving = "HALVING",
});

fn ack_progress(progress: &control::AckProgress) -> AckProgress {
    let control::AckProgress { acked, pkts_acked, marked, in_flight, rtt, one_way_delay, .. } = *progress;
    let control::AckProgress { snd_una, snd_nxt, is_predicted, .. } = *progress;
    let (rtt_ns, one_way_delay_ns) = (rtt.map(Span::as_nanos), one_way_delay.map(Span::as_nanos));
    AckProgress { acked, pkts_acked, marked, in_flight, rtt_ns, one_way_delay_ns, snd_una, snd_nxt, is_predicted }
}

/// The event as an object of its class. `seed` is drawn for a path that comes up.
pub(crate) fn to_python<'py>(
    py: Python<'py>,
    event: &control::PathEvent,
    seed: impl FnOnce() -> u64,
) -> PyResult<Bound<'py, PyAny>> {
    use control::PathEvent;
    Ok(match event {
        PathEvent::Ack(sample) => Bound::new(py, ack(sample))?.into_any(),
        PathEvent::AckProgress(progress) => Bound::new(py, ack_progress(progress))?.into_any(),
        PathEvent::PathUp(path) => {
            let up = PathUp {
                mss: path.mss,
                initial_window: path.initial_window,
                rtt_ns: path.rtt.map(Span::as_nanos),
                tick_ns: path.tick.as_nanos(),
                cwnd_clamp: path.cwnd_clamp,
                reduction: path.reduction.into(),
                seed: seed(),
            };
            Bound::new(py, up)?.into_any()
        }
        PathEvent::PathDown => Bound::new(py, PathDown {})?.into_any(),
        &PathEvent::Congestion { cause, reduce_cwnd, in_flight, by_timer } => {
            Bound::new(py, Congestion { cause: cause.into(), reduce_cwnd, in_flight, by_timer })?.into_any()
        }
        PathEvent::SpuriousLoss => Bound::new(py, SpuriousLoss {})?.into_any(),
        &PathEvent::Recovered { to_ssthresh } => Bound::new(py, Recovered { to_ssthresh })?.into_any(),
        PathEvent::WindowRestart { idle, rto } => {
            let (idle_ns, rto_ns) = (idle.as_nanos(), rto.as_nanos());
            Bound::new(py, WindowRestart { idle_ns, rto_ns })?.into_any()
        }
        PathEvent::IdleRestart { idle, rto, app_limited } => {
            let (idle_ns, rto_ns) = (idle.as_nanos(), rto.as_nanos());
            Bound::new(py, IdleRestart { idle_ns, rto_ns, app_limited: *app_limited })?.into_any()
        }
        &PathEvent::ApplicationLimited { cwnd_used } => Bound::new(py, ApplicationLimited { cwnd_used })?.into_any(),
        PathEvent::Penalise => Bound::new(py, Penalise {})?.into_any(),
        &PathEvent::MssChanged { mss } => Bound::new(py, MssChanged { mss })?.into_any(),
        _ => unreachable!("each event has a class"),
    })
}

/// An acknowledgement; a value without a sample yet is `None`.
pub(crate) fn ack(sample: &control::AckSample) -> Ack {
    Ack {
        acked: sample.acked,
        pkts_acked: sample.pkts_acked,
        lost: sample.lost,
        marked: sample.marked,
        sent: sample.sent,
        prior_in_flight: sample.prior_in_flight,
        in_flight: sample.in_flight,
        until_departure_ns: sample.until_departure.as_nanos(),
        rtt_ns: sample.rtt.map(Span::as_nanos),
        srtt_ns: (sample.srtt > Span::ZERO).then(|| sample.srtt.as_nanos()),
        min_rtt_ns: (sample.min_rtt < Span::MAX).then(|| sample.min_rtt.as_nanos()),
        one_way_delay_ns: sample.one_way_delay.map(Span::as_nanos),
        rate_sample: sample.rate_sample.map(rate_sample),
        newest_delivered: sample.newest_delivered.map(send_state),
        newest_lost: sample.newest_lost.map(send_state),
        delivered: sample.delivered,
        snd_una: sample.snd_una,
        snd_nxt: sample.snd_nxt,
        una_advanced: sample.una_advanced,
        is_predicted: sample.is_predicted,
        cwnd_limited: sample.cwnd_limited,
        may_raise_cwnd: sample.may_raise_cwnd,
        prior_ca_state: sample.prior_ca_state.into(),
        ca_state: sample.ca_state.into(),
    }
}

fn rate_sample(sample: control::RateSample) -> RateSample {
    let control::RateSample { delivered, interval, prior_delivered, app_limited, ack_delayed } = sample;
    RateSample { delivered, interval_ns: interval.as_nanos(), prior_delivered, app_limited, ack_delayed }
}

fn send_state(state: control::SendState) -> SendState {
    let control::SendState { tx_in_flight, lost, marked, app_limited } = state;
    SendState { tx_in_flight, lost, marked, app_limited }
}

pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PathUp>()?;
    module.add_class::<PathDown>()?;
    module.add_class::<Ack>()?;
    module.add_class::<RateSample>()?;
    module.add_class::<SendState>()?;
    module.add_class::<AckProgress>()?;
    module.add_class::<Congestion>()?;
    module.add_class::<SpuriousLoss>()?;
    module.add_class::<Recovered>()?;
    module.add_class::<WindowRestart>()?;
    module.add_class::<IdleRestart>()?;
    module.add_class::<ApplicationLimited>()?;
    module.add_class::<Penalise>()?;
    module.add_class::<MssChanged>()?;
    module.add_class::<Cause>()?;
    module.add_class::<CaState>()?;
    module.add_class::<Reduction>()
}
