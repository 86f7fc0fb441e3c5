//! Schedulers whose code is a Python class. Times are nanoseconds, rates bits per second.

use super::controller::{Class, Instance};
use super::events::shown;
use super::failure::expect;
use ::schedule::{Constructor, PacketChoice, Scheduler};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use std::sync::Arc;
use units::PathId;

/// The state of a path.
#[pyclass(frozen, get_all, module = "ropewalk.algorithm")]
#[derive(Clone, Debug)]
pub(crate) struct PathView {
    has_room: bool,
    active: bool,
    backup: bool,
    srtt_ns: u64,
    rttvar_ns: u64,
    cwnd: u32,
    ssthresh: u32,
    in_flight: u32,
    queued: u32,
    pacing_rate_bps: u64,
    delivery_rate_bps: u64,
    phantom_queue_delay_ns: Option<u64>,
    buffered_packets: u32,
    cwnd_space: u32,
}

#[pymethods]
impl PathView {
    fn __repr__(&self) -> String {
        shown(self)
    }
}

impl From<&::schedule::PathView> for PathView {
    fn from(path: &::schedule::PathView) -> Self {
        Self {
            has_room: path.has_room,
            active: path.active,
            backup: path.backup,
            srtt_ns: path.srtt.as_nanos(),
            rttvar_ns: path.rttvar.as_nanos(),
            cwnd: path.cwnd,
            ssthresh: path.ssthresh,
            in_flight: path.in_flight,
            queued: path.queued,
            pacing_rate_bps: path.pacing_rate.as_bits(),
            delivery_rate_bps: path.delivery_rate.as_bits(),
            phantom_queue_delay_ns: path.phantom_queue_delay.map(units::Span::as_nanos),
            buffered_packets: path.buffered_packets(),
            cwnd_space: path.cwnd_space(),
        }
    }
}

/// The state of the paths and of the data to send.
#[pyclass(frozen, module = "ropewalk.algorithm")]
#[derive(Debug)]
pub(crate) struct SchedulerView {
    #[pyo3(get)]
    now_ns: u64,
    #[pyo3(get)]
    packet_bytes: u32,
    paths: Vec<::schedule::PathView>,
    #[pyo3(get)]
    snd_nxt: u64,
    #[pyo3(get)]
    snd_una: u64,
    #[pyo3(get)]
    unsent_packets: u64,
    #[pyo3(get)]
    rwnd_left_packets: u64,
    #[pyo3(get)]
    rwnd_stalls: u64,
    #[pyo3(get)]
    sendable_packets: u64,
}

impl SchedulerView {
    fn new(view: &::schedule::SchedulerView<'_>) -> Self {
        Self {
            now_ns: view.now.0,
            packet_bytes: view.packet_bytes,
            paths: view.paths.to_vec(),
            snd_nxt: view.snd_nxt,
            snd_una: view.snd_una,
            unsent_packets: view.unsent_packets,
            rwnd_left_packets: view.rwnd_left_packets,
            rwnd_stalls: view.rwnd_stalls,
            sendable_packets: view.sendable_packets(),
        }
    }

    fn view(&self) -> ::schedule::SchedulerView<'_> {
        ::schedule::SchedulerView {
            now: units::Instant(self.now_ns),
            packet_bytes: self.packet_bytes,
            fragment_bytes: self.packet_bytes,
            paths: &self.paths,
            snd_nxt: self.snd_nxt,
            snd_una: self.snd_una,
            unsent_packets: self.unsent_packets,
            rwnd_left_packets: self.rwnd_left_packets,
            rwnd_stalls: self.rwnd_stalls,
        }
    }
}

#[pymethods]
impl SchedulerView {
    /// All paths; a path's number is its position.
    #[getter]
    fn paths(&self) -> Vec<PathView> {
        self.paths.iter().map(PathView::from).collect()
    }

    fn usable_paths(&self) -> Vec<(u16, PathView)> {
        self.view().usable_paths().map(|(id, path)| (id.0, path.into())).collect()
    }

    fn paths_with_room(&self) -> Vec<(u16, PathView)> {
        self.view().paths_with_room().map(|(id, path)| (id.0, path.into())).collect()
    }

    fn __repr__(&self) -> String {
        shown(self)
    }
}

/// The next packet to send, and its path.
#[pyclass(frozen, module = "ropewalk.algorithm")]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pick(::schedule::Pick);

#[pymethods]
impl Pick {
    #[staticmethod]
    fn next(path: u16) -> Self {
        Self(::schedule::Pick::next(PathId(path)))
    }

    #[staticmethod]
    fn oldest_unacked(path: u16) -> Self {
        Self(::schedule::Pick { path: PathId(path), packet: PacketChoice::OldestUnacked })
    }

    #[staticmethod]
    fn skip_ahead(path: u16, packets: u32) -> Self {
        Self(::schedule::Pick { path: PathId(path), packet: PacketChoice::SkipAhead(packets) })
    }

    #[getter]
    fn path(&self) -> u16 {
        self.0.path.0
    }

    fn __repr__(&self) -> String {
        shown(&self.0)
    }
}

impl Class {
    /// The constructor of a class of schedulers.
    pub(super) fn scheduler(self) -> Constructor {
        Constructor::Dyn(Arc::new(move |setup| {
            let instance = self.instance(setup.params, |keywords| {
                keywords.set_item("weights", setup.weights)?;
                keywords.set_item("first", setup.first)
            });
            Box::new(PyScheduler { instance })
        }))
    }
}

#[derive(Debug)]
struct PyScheduler {
    instance: Instance,
}

impl Scheduler for PyScheduler {
    fn pick(&mut self, view: &::schedule::SchedulerView<'_>) -> Option<::schedule::Pick> {
        Python::attach(|py| {
            let pick = || {
                let answer = self.instance.get(py).call_method1("pick", (SchedulerView::new(view),))?;
                if answer.is_none() {
                    return Ok(None);
                }
                let Ok(pick) = answer.cast::<Pick>() else {
                    return Err(PyTypeError::new_err(format!("pick returned {}, not a Pick or None", answer.repr()?)));
                };
                let pick = pick.get().0;
                let path = view.paths.get(pick.path.index()).filter(|path| path.has_room);
                let message = || format!("pick returned path {}, which has no room or does not exist", pick.path.0);
                path.map(|_| Some(pick)).ok_or_else(|| PyValueError::new_err(message()))
            };
            expect(py, pick(), || {
                let now = view.now.0 as f64 / 1e9;
                format!("`{}` failed at {now} s over {:?}:", self.instance.name, view.paths)
            })
        })
    }
}

pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PathView>()?;
    module.add_class::<SchedulerView>()?;
    module.add_class::<Pick>()
}
