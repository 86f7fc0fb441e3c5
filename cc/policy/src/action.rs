//! Actions: the effect of a policy's answer.

use crate::monitor::Monitor;
use control::common::CwndController;
use control::single::cubic::{self, Cubic};
use control::{Context, Decision, Params, PathController, PathEvent, PathInfo};
use std::collections::BTreeMap;
use std::fmt;
use units::{INFINITE_SSTHRESH, Rate, Span};

/// The effect of one number of a policy's answer on its path.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Action {
    /// `rate_change(delta)`: the pacing rate `x` becomes `x (1 + delta a)`, or `x / (1 - delta a)` for a negative
    /// action `a`. The action is limited so that it at most doubles or halves the rate. Default: 0.025 (Aurora: Jay et
    /// al., ICML 2019; rule and constant as in the authors' PCC-RL, `apply_rate_delta`).
    RateChange {
        /// Relative change for an action of 1.
        delta: f64,
    },
    /// `rate(min, max)`: the pacing rate is `min (max / min)^((a + 1) / 2)` Mbit/s, `a` from -1 to 1. Default: 0.1 to 1000.
    Rate {
        /// Rate for an action of -1, Mbit/s.
        min: f64,
        /// Rate for an action of 1, Mbit/s.
        max: f64,
    },
    /// `window_change(e)`: the congestion window is multiplied by `2^(e a)`, `a` from -1 to 1. Default: 1. (Sage, Yen et
    /// al., SIGCOMM 2023: the action is the ratio of two consecutive windows.)
    WindowChange {
        /// Binary logarithm of the factor for an action of 1.
        exponent: f64,
    },
    /// `cubic_steering(e)`: CUBIC runs, and once per interval its window is multiplied by `2^(e a)`, `a` from -1 to 1.
    /// Default: 2 (Orca: Abbasloo et al., SIGCOMM 2020: cwnd = 2^(2 a) cwnd_u, every 20 ms).
    CubicSteering {
        /// Binary logarithm of the factor for an action of 1.
        exponent: f64,
    },
}

/// An action, for lists.
#[derive(Clone, Copy, Debug)]
pub struct ActionEntry {
    /// Name.
    pub name: &'static str,
    /// Names of the parameters, and their defaults.
    pub parameters: &'static [(&'static str, f64)],
    /// The values of `a` that are used; others are limited to them.
    pub range: &'static str,
    /// What an action `a` does.
    pub effect: &'static str,
    /// Paper or code.
    pub source: &'static str,
}

impl Action {
    /// The action of settings whose actions another part of a connection carries out.
    pub(crate) const UNUSED: Self = Self::RateChange { delta: 0.025 };

    /// The actions.
    pub const ENTRIES: [ActionEntry; 4] = [
        ActionEntry {
            name: "rate_change",
            parameters: &[("delta", 0.025)],
            range: "-1/delta to 1/delta",
            effect: "pacing rate x (1 + delta a), or pacing rate / (1 - delta a) for negative a",
            source: "Aurora, constants of the authors' code",
        },
        ActionEntry {
            name: "rate",
            parameters: &[("min", 0.1), ("max", 1000.0)],
            range: "-1 to 1",
            effect: "pacing rate min (max / min)^((a + 1) / 2) Mbit/s",
            source: "own",
        },
        ActionEntry {
            name: "window_change",
            parameters: &[("e", 1.0)],
            range: "-1 to 1",
            effect: "congestion window x 2^(e a)",
            source: "Sage: the action is the ratio of two windows",
        },
        ActionEntry {
            name: "cubic_steering",
            parameters: &[("e", 2.0)],
            range: "-1 to 1",
            effect: "CUBIC runs; its window x 2^(e a)",
            source: "Orca, with an interval of 20ms",
        },
    ];

    /// Reads `name` or `name(parameter, ...)`.
    ///
    /// # Errors
    /// An unknown name, a wrong number of parameters, a parameter that is not a positive number, a `max` below `min`.
    pub fn parse(text: &str) -> Result<Self, ActionError> {
        let error = || ActionError(text.to_owned());
        let (name, given) = match text.trim().split_once('(') {
            Some((name, rest)) => (name.trim(), rest.strip_suffix(')').ok_or_else(error)?),
            None => (text.trim(), ""),
        };
        let entry = Self::ENTRIES.iter().find(|known| known.name == name).ok_or_else(error)?;
        let given: Vec<f64> = match given.trim() {
            "" => entry.parameters.iter().map(|(_, default)| *default).collect(),
            given => given.split(',').map(|it| it.trim().parse()).collect::<Result<_, _>>().map_err(|_| error())?,
        };
        let is_good = given.len() == entry.parameters.len() && given.iter().all(|it| it.is_finite() && *it > 0.0);
        match (name, &given[..]) {
            _ if !is_good => Err(error()),
            ("rate_change", [delta]) if *delta <= 1.0 => Ok(Self::RateChange { delta: *delta }),
            ("rate", [min, max]) if min < max => Ok(Self::Rate { min: *min, max: *max }),
            ("window_change", [exponent]) => Ok(Self::WindowChange { exponent: *exponent }),
            ("cubic_steering", [exponent]) => Ok(Self::CubicSteering { exponent: *exponent }),
            _ => Err(error()),
        }
    }

    /// The largest absolute value of an action that is used; larger ones are limited to it.
    #[must_use]
    pub fn limit(self) -> f32 {
        match self {
            Self::RateChange { delta } => (1.0 / delta) as f32,
            _ => 1.0,
        }
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::RateChange { delta } => write!(f, "rate_change({delta})"),
            Self::Rate { min, max } => write!(f, "rate({min}, {max})"),
            Self::WindowChange { exponent } => write!(f, "window_change({exponent})"),
            Self::CubicSteering { exponent } => write!(f, "cubic_steering({exponent})"),
        }
    }
}

/// An action that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActionError(String);

impl fmt::Display for ActionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "`{}` is not an action; actions are rate_change(delta), rate(min Mbit/s, max Mbit/s), window_change(exponent) \
             and cubic_steering(exponent), all positive, delta at most 1",
            self.0
        )
    }
}

impl std::error::Error for ActionError {}

/// Minimum and maximum pacing rate, bit/s.
const RATES: [f64; 2] = [1e5, 1e11];
/// The RTT assumed for a path that has not measured one.
const UNKNOWN_RTT: Span = Span::from_millis(100);
/// Packets by which the window exceeds two RTTs at the pacing rate, so that the rate is the limit.
const WINDOW_MARGIN: f64 = 10.0;
const MIN_CWND: f64 = 2.0;

/// The limits of a path (window and pacing rate), and how actions change them.
#[derive(Debug)]
pub(crate) struct Actuator {
    action: Action,
    /// The path, once it is up.
    info: Option<PathInfo>,
    /// Pacing rate, bit/s.
    rate: f64,
    cwnd: f64,
    /// CUBIC, either steered by the policy or in place of a failed policy.
    cubic: Option<CwndController<Cubic>>,
    has_failed: bool,
}

impl Actuator {
    pub(crate) fn new(action: Action) -> Self {
        let cubic = matches!(action, Action::CubicSteering { .. }).then(new_cubic);
        Self { action, info: None, rate: 0.0, cwnd: 0.0, cubic, has_failed: false }
    }

    pub(crate) fn on_event(&mut self, event: &PathEvent, monitor: &Monitor, cx: &mut Context<'_>) {
        if let PathEvent::PathUp(info) = event {
            let rtt = info.rtt.unwrap_or(UNKNOWN_RTT).as_secs_f64();
            self.cwnd = f64::from(info.initial_window);
            self.info = Some(*info);
            self.set_rate(self.cwnd * f64::from(info.mss) * 8.0 / rtt);
        }
        if let Some(cubic) = &mut self.cubic {
            return cubic.on_event(event, cx);
        }
        if matches!(self.action, Action::RateChange { .. } | Action::Rate { .. }) {
            let srtt = if monitor.srtt() > Span::ZERO { monitor.srtt() } else { UNKNOWN_RTT }.as_secs_f64();
            self.cwnd = 2.0 * self.rate * srtt / (8.0 * monitor.mss().max(1.0)) + WINDOW_MARGIN;
        }
    }

    /// Carries out the action `a` of the policy.
    pub(crate) fn act(&mut self, a: f32) {
        if self.has_failed {
            return;
        }
        let a = f64::from(a.clamp(-self.action.limit(), self.action.limit()));
        match self.action {
            Action::RateChange { delta } if a >= 0.0 => self.set_rate(self.rate * (1.0 + delta * a)),
            Action::RateChange { delta } => self.set_rate(self.rate / (1.0 - delta * a)),
            Action::Rate { min, max } => self.set_rate(min * 1e6 * libm::pow(max / min, (a + 1.0) / 2.0)),
            Action::WindowChange { exponent } => {
                self.cwnd = self.clamped(self.cwnd * libm::exp2(exponent * a));
            }
            Action::CubicSteering { exponent } => {
                let Some(cubic) = &self.cubic else { return };
                let cwnd = cubic.state().cwnd;
                // After a timeout CUBIC's window is a packet, which an action of 0 leaves as it is.
                let steered = self.clamped(f64::from(cwnd) * libm::exp2(exponent * a)) as u32;
                self.set_cubic_cwnd(if a > 0.0 { steered } else { steered.min(cwnd) });
            }
        }
    }

    /// Handles a failure of the policy: CUBIC continues from the current window.
    pub(crate) fn fail(&mut self, cx: &mut Context<'_>) {
        if std::mem::replace(&mut self.has_failed, true) || self.cubic.is_some() {
            return;
        }
        let cwnd = self.decision().map_or(0, |decision| decision.cwnd).max(MIN_CWND as u32);
        let mut cubic = new_cubic();
        if let Some(info) = &self.info {
            cubic.on_event(&PathEvent::PathUp(*info), cx);
        }
        self.cubic = Some(cubic);
        self.set_cubic_cwnd(cwnd);
    }

    /// The path's decision; `None` before the path is up.
    pub(crate) fn decision(&self) -> Option<Decision> {
        self.info?;
        if let Some(cubic) = &self.cubic {
            return Some(cubic.decision());
        }
        let paces = matches!(self.action, Action::RateChange { .. } | Action::Rate { .. });
        Some(Decision {
            cwnd: self.clamped(self.cwnd) as u32,
            ssthresh: INFINITE_SSTHRESH,
            pacing_rate: paces.then(|| Rate::from_bits(self.rate as u64)),
        })
    }

    fn set_rate(&mut self, rate: f64) {
        self.rate = rate.clamp(RATES[0], RATES[1]);
    }

    fn set_cubic_cwnd(&mut self, cwnd: u32) {
        if let Some(cubic) = &mut self.cubic {
            cubic.state_mut().cwnd = cwnd;
        }
    }

    fn clamped(&self, cwnd: f64) -> f64 {
        let clamp = self.info.map_or(u32::MAX / 2, |info| info.cwnd_clamp.min(u32::MAX / 2));
        cwnd.clamp(MIN_CWND, f64::from(clamp).max(MIN_CWND))
    }
}

fn new_cubic() -> CwndController<Cubic> {
    let params = Params::new(cubic::ENTRY.parameters, &BTreeMap::new()).expect("the defaults are in range");
    CwndController::new(Cubic::new(&params))
}
