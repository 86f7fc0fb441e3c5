//! Events of a path as Python's values: the fields of [`control::PathEvent`]. Times are nanoseconds, windows packets, rates
//! bits per second.

use pyo3::prelude::*;
use units::Span;

/// A class of values that do not change, with a `repr` that shows its fields.
macro_rules! values {
    ($($(#[$attribute:meta])* $name:ident { $($field:ident: $kind:ty,)* })*) => {$(
        $(#[$attribute])*
        #[pyclass(frozen, get_all, module = "ropewalk.algorithm")]
        #[derive(Clone, Debug)]
        pub(crate) struct $name { $(pub(crate) $field: $kind,)* }

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
    PathUp {
        mss: u32,
        initial_window: u32,
        rtt_ns: Option<u64>,
        tick_ns: u64,
        cwnd_clamp: u32,
        reduction: Reduction,
        seed: u64,
    }
    PathDown {}
    Ack {
        acked: u32,
        pkts_acked: u32,
        lost: u32,
        marked: u32,
        sent: u32,
        prior_in_flight: u32,
        in_flight: u32,
        until_departure_ns: u64,
        rtt_ns: Option<u64>,
        srtt_ns: Option<u64>,
        min_rtt_ns: Option<u64>,
        one_way_delay_ns: Option<u64>,
        rate_sample: Option<RateSample>,
        newest_delivered: Option<SendState>,
        newest_lost: Option<SendState>,
        delivered: u64,
        snd_una: u64,
        snd_nxt: u64,
        una_advanced: bool,
        is_predicted: bool,
        cwnd_limited: bool,
        may_raise_cwnd: bool,
        prior_ca_state: CaState,
        ca_state: CaState,
    }
    RateSample {
        delivered: u32,
        interval_ns: u64,
        prior_delivered: u64,
        app_limited: bool,
        ack_delayed: bool,
    }
    SendState {
        tx_in_flight: u32,
        lost: u32,
        marked: u32,
        app_limited: bool,
    }
    AckProgress {
        acked: u32,
        pkts_acked: u32,
        marked: u32,
        in_flight: u32,
        rtt_ns: Option<u64>,
        one_way_delay_ns: Option<u64>,
        snd_una: u64,
        snd_nxt: u64,
        is_predicted: bool,
    }
    Congestion {
        cause: Cause,
        reduce_cwnd: bool,
        in_flight: u32,
        by_timer: bool,
    }
    SpuriousLoss {}
    Recovered { to_ssthresh: bool, }
    IdleRestart {
        idle_ns: u64,
        rto_ns: u64,
        app_limited: bool,
    }
    ApplicationLimited { cwnd_used: u32, }
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
    module.add_class::<IdleRestart>()?;
    module.add_class::<ApplicationLimited>()?;
    module.add_class::<Penalise>()?;
    module.add_class::<MssChanged>()?;
    module.add_class::<Cause>()?;
    module.add_class::<CaState>()?;
    module.add_class::<Reduction>()
}
