//! General AIMD: adds `increase` packets per round trip, and reduces the window by the share `decrease` on congestion.
//! With its defaults it is Reno.
//!
//! Source: Yang and Lam, "General AIMD congestion control" (ICNP 2000), equations 1 and 2.

use control::common::{CongestionOps, CwndController, CwndState, cong_avoid_ai, slow_start};
use control::{AckSample, AlgorithmEntry, Constructor, Context, ParamKind, Parameter, Properties, RegisterError};

/// Registers the algorithm: from then on scenarios may name it.
///
/// # Errors
/// Another plug-in already has the name.
pub fn register() -> Result<(), RegisterError> {
    control::registry::register(entry()).map(drop)
}

/// The registration.
#[must_use]
pub fn entry() -> AlgorithmEntry {
    let (package, version) = (env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION"));
    // Every source file of the algorithm: results folders tell its versions apart.
    let code_version = control::code_version(package, version, &[include_str!("lib.rs")]);
    AlgorithmEntry {
        name: "gaimd",
        aliases: &[],
        title: "general additive increase, multiplicative decrease",
        source: "Yang and Lam, ICNP 2000",
        parameters: &[
            Parameter {
                name: "increase",
                description: "packets added in a round trip",
                kind: ParamKind::Number { default: 1.0, min: 0.01, max: 100.0 },
            },
            Parameter {
                name: "decrease",
                description: "part of the window that is taken away on congestion",
                kind: ParamKind::Number { default: 0.5, min: 0.01, max: 0.99 },
            },
        ],
        properties: Properties { code_version: Some(code_version), ..Properties::DEFAULT },
        constructor: Constructor::PerPath(|params| {
            let (increase, decrease) = (params.number("increase"), params.number("decrease"));
            CwndController::boxed(Gaimd { increase, decrease })
        }),
    }
}

#[derive(Debug)]
struct Gaimd {
    increase: f64,
    decrease: f64,
}

impl CongestionOps for Gaimd {
    fn cong_avoid(&mut self, state: &mut CwndState, acked: u32, _: &AckSample, _: &mut Context<'_>) {
        let acked = if state.in_slow_start() { slow_start(state, acked) } else { acked };
        if acked > 0 {
            cong_avoid_ai(state, (f64::from(state.cwnd) / self.increase) as u32, acked);
        }
    }

    fn ssthresh(&mut self, state: &CwndState, _: &mut Context<'_>) -> u32 {
        ((f64::from(state.cwnd) * (1.0 - self.decrease)) as u32).max(2)
    }
}
