//! Coupled algorithms, one file each.

pub mod balia;
pub mod cmpbbr;
pub mod coupled_bbr;
pub mod dmctcp;
pub mod ewtcp;
pub mod fully_coupled;
pub mod lia;
mod models;
pub mod olia;
pub mod semicoupled;
pub mod wvegas;

use crate::frame::{Coupled, Coupling, Paths, Window, reno_increase, slow_start};
use crate::single::bbr::Bbr;
use crate::{Controller, Default as Range, Parameter, Settings};

/// Every coupling of windows can stand over a controller of each path.
const PATH: Parameter = Parameter {
    name: "path",
    meaning: "what controls each path: the coupled window alone (it is Reno's, coupled), or BBR v1 with it",
    default: Range::Word(&["reno", "bbr"]),
};

/// For algorithms whose kernel module counts in integers.
const STEPS: Parameter = Parameter {
    name: "steps",
    meaning: "paper: by packets acknowledged, in fractions; linux: by acknowledgements, in the kernel module's integers",
    default: Range::Word(&["paper", "linux"]),
};

/// Growth by `increase` a packet acknowledged; or, without one, in the kernel module's integers: plain slow start, and in
/// congestion avoidance `count`.
fn grow<M>(
    paths: &mut Paths<'_, M>,
    window: &mut Window,
    acked: u32,
    increase: Option<f64>,
    count: impl FnOnce(&mut Paths<'_, M>, &mut Window),
) {
    match increase {
        _ if paths.alone() => reno_increase(window, acked),
        Some(increase) => paths.grow(window, acked, increase),
        None if window.in_slow_start() => {
            slow_start(window, acked);
        }
        None => count(paths, window),
    }
}

/// A coupling as its settings want it.
fn boxed<C: Coupling + 'static>(settings: &Settings, coupling: C) -> Box<dyn Controller> {
    let coupled = Coupled::new(coupling);
    if settings.word(PATH.name) == "bbr" {
        return Box::new(coupled.over(|| Box::new(Bbr::new())));
    }
    Box::new(coupled)
}

fn integer_steps(settings: &Settings) -> bool {
    settings.word(STEPS.name) == "linux"
}

/// The kernel modules' additive increase: one packet after `period` acknowledgements, of whatever size, and one more.
fn count_acknowledgement(window: &mut Window, period: u64) {
    if u64::from(window.credit) >= period {
        window.credit = 0;
        window.size = (window.size + 1).min(window.clamp);
    } else {
        window.credit += 1;
    }
}
