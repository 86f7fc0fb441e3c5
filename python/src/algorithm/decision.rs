//! A controller's decision, checked where it is made, so that the traceback shows that line.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use units::{INFINITE_SSTHRESH, Rate};

/// The limits that a controller sets for a path.
#[pyclass(frozen, module = "ropewalk.algorithm")]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Decision(pub(crate) control::Decision);

#[pymethods]
impl Decision {
    #[new]
    #[pyo3(signature = (cwnd, ssthresh = f64::INFINITY, pacing_rate_bps = None))]
    fn new(cwnd: f64, ssthresh: f64, pacing_rate_bps: Option<f64>) -> PyResult<Self> {
        let pacing_rate = pacing_rate_bps.map(pacing_rate).transpose()?;
        let (cwnd, ssthresh) = (self::cwnd(cwnd)?, self::ssthresh(ssthresh)?);
        Ok(Self(control::Decision { cwnd, ssthresh, pacing_rate }))
    }

    #[getter]
    fn cwnd(&self) -> u32 {
        self.0.cwnd
    }

    #[getter]
    fn ssthresh(&self) -> f64 {
        if self.0.ssthresh >= INFINITE_SSTHRESH { f64::INFINITY } else { f64::from(self.0.ssthresh) }
    }

    #[getter]
    fn pacing_rate_bps(&self) -> Option<u64> {
        self.0.pacing_rate.map(Rate::as_bits)
    }

    fn __repr__(&self) -> String {
        let rate = self.pacing_rate_bps().map_or("None".to_owned(), |rate| rate.to_string());
        format!("Decision(cwnd={}, ssthresh={}, pacing_rate_bps={rate})", self.0.cwnd, self.ssthresh())
    }
}

/// Whole packets of a window.
pub(crate) fn cwnd(packets: f64) -> PyResult<u32> {
    if packets.is_finite() && packets >= 1.0 && packets <= f64::from(INFINITE_SSTHRESH) {
        return Ok(packets as u32);
    }
    Err(PyValueError::new_err(format!("cwnd is {packets}: at least 1 packet, and finite")))
}

/// Whole packets of a threshold; infinite before the first congestion.
pub(crate) fn ssthresh(packets: f64) -> PyResult<u32> {
    if packets >= 1.0 {
        return Ok(packets.min(f64::from(INFINITE_SSTHRESH)) as u32);
    }
    Err(PyValueError::new_err(format!("ssthresh is {packets}: at least 1 packet, math.inf before any congestion")))
}

fn pacing_rate(bits: f64) -> PyResult<Rate> {
    if bits.is_finite() && bits >= 1.0 {
        return Ok(Rate::from_bits(bits as u64));
    }
    Err(PyValueError::new_err(format!("pacing_rate_bps is {bits}: above 0 and finite, or None for no pacing")))
}
