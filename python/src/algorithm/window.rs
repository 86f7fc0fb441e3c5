//! Window-based algorithms in Python: the operations of Linux's `tcp_congestion_ops`. Proportional rate reduction, one
//! reduction per window, and undo are those of `control::common`.

use super::controller::Instance;
use super::decision;
use super::events::{self, CaState};
use super::failure::expect;
use control::common::{self, CongestionOps};
use control::{AckProgress, AckSample, Context, PathInfo};
use pyo3::prelude::*;
use units::INFINITE_SSTHRESH;

/// The window that an operation sees and changes.
#[pyclass(module = "ropewalk.algorithm")]
#[derive(Clone, Debug)]
pub(crate) struct CwndState(common::CwndState);

#[pymethods]
impl CwndState {
    #[getter]
    fn cwnd(&self) -> u32 {
        self.0.cwnd
    }

    #[setter]
    fn set_cwnd(&mut self, packets: f64) -> PyResult<()> {
        self.0.cwnd = decision::cwnd(packets)?;
        Ok(())
    }

    #[getter]
    fn ssthresh(&self) -> f64 {
        if self.0.ssthresh >= INFINITE_SSTHRESH { f64::INFINITY } else { f64::from(self.0.ssthresh) }
    }

    #[setter]
    fn set_ssthresh(&mut self, packets: f64) -> PyResult<()> {
        self.0.ssthresh = decision::ssthresh(packets)?;
        Ok(())
    }

    #[getter]
    fn cwnd_cnt(&self) -> u32 {
        self.0.cwnd_cnt
    }

    #[setter]
    fn set_cwnd_cnt(&mut self, packets: u32) {
        self.0.cwnd_cnt = packets;
    }

    #[getter]
    fn cwnd_clamp(&self) -> u32 {
        self.0.cwnd_clamp
    }

    #[getter]
    fn prior_cwnd(&self) -> u32 {
        self.0.prior_cwnd
    }

    #[getter]
    fn mss(&self) -> u32 {
        self.0.mss
    }

    #[getter]
    fn tick_ns(&self) -> u64 {
        self.0.tick.as_nanos()
    }

    #[getter]
    fn ca_state(&self) -> CaState {
        self.0.ca_state.into()
    }

    #[getter]
    fn in_slow_start(&self) -> bool {
        self.0.in_slow_start()
    }

    /// Slow start (Linux `tcp_slow_start`); returns the acknowledged packets that are left over.
    fn slow_start(&mut self, acked: u32) -> u32 {
        common::slow_start(&mut self.0, acked)
    }

    /// Adds a packet per `w` packets acknowledged (Linux `tcp_cong_avoid_ai`).
    fn cong_avoid_ai(&mut self, w: u32, acked: u32) {
        common::cong_avoid_ai(&mut self.0, w, acked);
    }

    fn __repr__(&self) -> String {
        let (cwnd, ssthresh, cwnd_cnt) = (self.0.cwnd, self.ssthresh(), self.0.cwnd_cnt);
        format!("CwndState(cwnd={cwnd}, ssthresh={ssthresh}, cwnd_cnt={cwnd_cnt}, ca_state={:?})", self.0.ca_state)
    }
}

/// The operations of an instance.
#[derive(Debug)]
pub(super) struct WindowOps {
    instance: Instance,
    has_init: bool,
    has_pkts_acked: bool,
    has_on_ack: bool,
    has_set_state: bool,
    has_undo_cwnd: bool,
}

impl WindowOps {
    pub(super) fn new(instance: Instance) -> Self {
        let has = |name| Python::attach(|py| instance.made(py).is_some_and(|made| made.hasattr(name).unwrap_or(false)));
        let [has_init, has_pkts_acked, has_on_ack] = ["init", "pkts_acked", "on_ack"].map(has);
        let [has_set_state, has_undo_cwnd] = ["set_state", "undo_cwnd"].map(has);
        Self { instance, has_init, has_pkts_acked, has_on_ack, has_set_state, has_undo_cwnd }
    }

    /// Calls an operation with the state and the result of `arguments`, and keeps its changes to the state.
    fn call<T>(
        &self,
        operation: &str,
        state: &common::CwndState,
        call: impl for<'py> FnOnce(&Bound<'py, PyAny>, &Bound<'py, CwndState>) -> PyResult<T>,
    ) -> (T, common::CwndState) {
        Python::attach(|py| {
            let result = Bound::new(py, CwndState(state.clone())).and_then(|shared| {
                let answer = call(self.instance.get(py), &shared)?;
                let state = shared.borrow().0.clone();
                Ok((answer, state))
            });
            expect(py, result, || format!("`{}` failed in {operation} with {:?}:", self.instance.name, state))
        })
    }
}

impl CongestionOps for WindowOps {
    fn init(&mut self, state: &mut common::CwndState, path: &PathInfo, cx: &mut Context<'_>) {
        if self.has_init {
            let event = control::PathEvent::PathUp(*path);
            let (now, rng) = (cx.now.0, &mut *cx.rng);
            ((), *state) = self.call("init", state, |instance, shared| {
                let event = events::to_python(instance.py(), &event, || rng.bits())?;
                instance.call_method1("init", (shared, event, now)).map(drop)
            });
        }
    }

    fn cong_avoid(&mut self, state: &mut common::CwndState, acked: u32, sample: &AckSample, cx: &mut Context<'_>) {
        ((), *state) = self.call("cong_avoid", state, |instance, shared| {
            instance.call_method1("cong_avoid", (shared, acked, events::ack(sample), cx.now.0)).map(drop)
        });
    }

    fn ssthresh(&mut self, state: &common::CwndState, cx: &mut Context<'_>) -> u32 {
        let call = |instance: &Bound<'_, PyAny>, shared: &Bound<'_, CwndState>| {
            decision::ssthresh(instance.call_method1("ssthresh", (shared, cx.now.0))?.extract()?)
        };
        self.call("ssthresh", state, call).0
    }

    fn pkts_acked(&mut self, state: &mut common::CwndState, progress: &AckProgress, cx: &mut Context<'_>) {
        if self.has_pkts_acked {
            let event = control::PathEvent::AckProgress(*progress);
            let now = cx.now.0;
            ((), *state) = self.call("pkts_acked", state, |instance, shared| {
                let event = events::to_python(instance.py(), &event, || 0)?;
                instance.call_method1("pkts_acked", (shared, event, now)).map(drop)
            });
        }
    }

    fn on_ack(&mut self, state: &mut common::CwndState, sample: &AckSample, cx: &mut Context<'_>) {
        if self.has_on_ack {
            ((), *state) = self.call("on_ack", state, |instance, shared| {
                instance.call_method1("on_ack", (shared, events::ack(sample), cx.now.0)).map(drop)
            });
        }
    }

    fn set_state(&mut self, state: &mut common::CwndState, next: control::CaState, cx: &mut Context<'_>) {
        if self.has_set_state {
            ((), *state) = self.call("set_state", state, |instance, shared| {
                instance.call_method1("set_state", (shared, CaState::from(next), cx.now.0)).map(drop)
            });
        }
    }

    fn undo_cwnd(&mut self, state: &common::CwndState) -> u32 {
        if !self.has_undo_cwnd {
            return state.cwnd.max(state.prior_cwnd);
        }
        let call = |instance: &Bound<'_, PyAny>, shared: &Bound<'_, CwndState>| {
            decision::cwnd(instance.call_method1("undo_cwnd", (shared,))?.extract()?)
        };
        self.call("undo_cwnd", state, call).0
    }
}
