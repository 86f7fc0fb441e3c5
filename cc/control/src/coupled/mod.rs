//! Coupled algorithms, one file each.

pub mod balia;
mod bbr_paths;
pub mod cmpbbr;
pub mod coupled_bbr;
pub mod discern;
pub mod dmctcp;
pub mod ewtcp;
pub mod fully_coupled;
pub mod lia;
pub mod olia;
pub mod semicoupled;
pub mod wvegas;

use crate::common::{CoupledController, Coupling, CwndState, SubflowGroup, reno_cong_avoid, slow_start};
use crate::single::bbr::Bbr;
use crate::{Controller, ParamKind, Parameter, Params};

/// A controller for each path, with which every window-based coupling can be combined.
const PATH: Parameter = Parameter {
    name: "path",
    description: "control of each path: the coupled window of Reno alone, or BBR v1 with it",
    kind: ParamKind::Choice(&["reno", "bbr"]),
};

/// Arithmetic of the increase, for algorithms that have a kernel module.
const STEPS: Parameter = Parameter {
    name: "steps",
    description: "paper: by packets acknowledged, in fractions; linux: by acknowledgements, in the kernel module's integers",
    kind: ParamKind::Choice(&["paper", "linux"]),
};

/// Slow start, then growth by `increase` per acknowledged packet. If it is `None`, growth is by `kernel_increase`, in
/// the kernel module's integers.
fn cong_avoid<M>(
    group: &mut SubflowGroup<'_, M>,
    state: &mut CwndState,
    acked: u32,
    increase: Option<f64>,
    kernel_increase: impl FnOnce(&mut SubflowGroup<'_, M>, &mut CwndState),
) {
    match increase {
        _ if group.is_alone() => reno_cong_avoid(state, acked),
        Some(increase) => group.cong_avoid(state, acked, increase),
        None if state.in_slow_start() => {
            slow_start(state, acked);
        }
        None => kernel_increase(group, state),
    }
}

/// The controller of a coupling, with the `path` parameter.
fn boxed<C: Coupling + 'static>(params: &Params, coupling: C) -> Box<dyn Controller> {
    let coupled = CoupledController::new(coupling);
    if params.choice(PATH.name) == "bbr" {
        return Box::new(coupled.with_path_controllers(|| Box::new(Bbr::new())));
    }
    Box::new(coupled)
}

fn kernel_integers(params: &Params) -> bool {
    params.choice(STEPS.name) == "linux"
}

/// The kernel modules' additive increase: one packet after `period + 1` acknowledgements of any size.
fn count_ack(state: &mut CwndState, period: u64) {
    if u64::from(state.cwnd_cnt) >= period {
        state.cwnd_cnt = 0;
        state.cwnd = (state.cwnd + 1).min(state.cwnd_clamp);
    } else {
        state.cwnd_cnt += 1;
    }
}
