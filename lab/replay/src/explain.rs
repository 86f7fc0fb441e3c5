//! Named changes of our machine. A change that makes a difference disappear explains it.

use crate::difference::{Tolerance, first_difference};
use crate::machine::play_with;
use crate::recording::Recording;
use crate::script::Script;
use serde::{Deserialize, Serialize};

/// Number of events before a difference, and of clocks at each, that are tried.
const EVENTS: usize = 30;
const CLOCKS: u64 = 32;
/// Number of random streams that are tried per acknowledgement.
const STREAMS: u64 = 100;
/// Delays of the SYN that are tried, microseconds: a kernel prepares a connection for that long.
const CONNECT_US: [u64; 4] = [0, 10, 20, 30];

/// A modification of our machine.
#[derive(Clone, Debug, Default)]
pub(crate) struct Variation {
    /// Events at which its clock is some microseconds late, and whose packets leave tenths of a microsecond after one another:
    /// the number of acknowledgements so far, and the seed of the times.
    pub(crate) clocks: Vec<(usize, u64)>,
    /// Microseconds by which the SYN leaves late, so that the first RTT is shorter.
    pub(crate) connect_us: u64,
    /// The numbers of acknowledgements at whose tick another timer of the host expires, if timers expire by what the kernel's
    /// wheel remembers.
    pub(crate) other_timers: Option<Vec<usize>>,
    /// Acknowledgements from which on the controller draws from another random stream: the index of each, and the seed of
    /// its stream.
    pub(crate) draws: Vec<(usize, u64)>,
}

impl Variation {
    /// With the clock of this seed at an event.
    fn with_clock(&self, event: usize, seed: u64) -> Self {
        let others = self.clocks.iter().copied().filter(|(other, _)| *other != event);
        Self { clocks: others.chain([(event, seed)]).collect(), ..self.clone() }
    }

    /// With another timer at an event; `None` if there is one already, or the wheel has no memory.
    fn with_timer(&self, event: usize) -> Option<Self> {
        let others = self.other_timers.as_ref().filter(|others| !others.contains(&event))?;
        Some(Self { other_timers: Some([&others[..], &[event]].concat()), ..self.clone() })
    }
}

/// A change that explains a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Explanation {
    /// The SYN leaves up to thirty microseconds later, single events come up to eight microseconds later, and packets of a burst
    /// leave one after another. RACK compares times of sending in microseconds, and timers are rounded to ticks.
    Clock,
    /// Timers of 63 ticks or more expire by what the kernel's timer wheel remembers: a timer that is set to the same tick again
    /// keeps its bucket, and one that is set when a timer of the host has just expired is a tick nearer.
    Timers,
    /// The controller draws other random numbers where the kernel did.
    Draws,
}

impl std::fmt::Display for Explanation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Clock => write!(f, "microseconds of clock difference"),
            Self::Timers => write!(f, "the memory of the timer wheel"),
            Self::Draws => write!(f, "other draws of the controller"),
        }
    }
}

/// The first change, of a short list, with which our machine behaves as the kernel did.
#[must_use]
pub fn explanation(script: &Script, kernel: &Recording, tolerance: Tolerance) -> Option<Explanation> {
    let (variation, ours) = closest_variation(script, kernel, tolerance).ok()?;
    if first_difference(script, &ours, kernel, tolerance).is_none() {
        return Some(if variation.other_timers.is_some() { Explanation::Timers } else { Explanation::Clock });
    }
    draws_of(script, kernel, tolerance).map(|_| Explanation::Draws)
}

/// Our recording with the clock and the timers with which it is the same as the kernel's for longest.
///
/// # Errors
/// There is no such algorithm.
pub fn closest(script: &Script, kernel: &Recording, tolerance: Tolerance) -> Result<Recording, String> {
    closest_variation(script, kernel, tolerance).map(|(_, ours)| ours)
}

fn closest_variation(
    script: &Script,
    kernel: &Recording,
    tolerance: Tolerance,
) -> Result<(Variation, Recording), String> {
    let mut best = None;
    let timers = [None, Some(Vec::new())].into_iter();
    for (other_timers, connect_us) in timers.flat_map(|timers| CONNECT_US.map(|us| (timers.clone(), us))) {
        let variation = Variation { connect_us, other_timers, ..Variation::default() };
        let variation = nearer(script, kernel, variation, tolerance);
        let ours = play_with(script, &variation)?;
        let ack = first_difference(script, &ours, kernel, tolerance).map_or(usize::MAX, |difference| difference.ack);
        if best.as_ref().is_none_or(|(longest, _)| ack > *longest) {
            best = Some((ack, (variation, ours)));
        }
        if ack == usize::MAX {
            break;
        }
    }
    best.map(|(_, best)| best).ok_or_else(|| "no clock was tried".to_owned())
}

/// Finds the kernel's clock and its other timers, acknowledgement by acknowledgement: where the recordings differ, another clock
/// or timer at one of the events before is tried until the next difference is a later one.
fn nearer(script: &Script, kernel: &Recording, mut variation: Variation, tolerance: Tolerance) -> Variation {
    let difference = |variation: &Variation| {
        let ours = play_with(script, variation).ok()?;
        first_difference(script, &ours, kernel, tolerance).map(|difference| difference.ack)
    };
    while let Some(at) = difference(&variation) {
        let earlier = || (at.saturating_sub(EVENTS)..=at).rev();
        let with_timer = earlier().filter_map(|event| variation.with_timer(event));
        let with_clock = earlier().flat_map(|event| (0..CLOCKS).map(move |seed| (event, seed)));
        let mut tried = with_timer.chain(with_clock.map(|(event, seed)| variation.with_clock(event, seed)));
        match tried.find(|tried| difference(tried).is_none_or(|next| next > at)) {
            Some(better) => variation = better,
            None => break,
        }
    }
    variation
}

/// Finds the draws of the kernel, acknowledgement by acknowledgement: where the recordings differ, other random streams are
/// tried until the next difference is a later one.
fn draws_of(script: &Script, kernel: &Recording, tolerance: Tolerance) -> Option<Vec<(usize, u64)>> {
    let difference = |draws: &[(usize, u64)]| {
        let ours = play_with(script, &Variation { draws: draws.to_vec(), ..Variation::default() }).ok()?;
        first_difference(script, &ours, kernel, tolerance).map(|difference| difference.ack)
    };
    let mut draws = Vec::new();
    while let Some(at) = difference(&draws) {
        let later = |seed: &u64| difference(&[&draws[..], &[(at, *seed)]].concat()).is_none_or(|next| next > at);
        let seed = (1..STREAMS).find(later)?;
        draws.push((at, seed));
    }
    Some(draws)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Situation, play, script_of};

    const TOLERANCE: Tolerance = Tolerance { time_us: 100 };

    fn script(seed: u64, congestion: &str) -> Script {
        script_of(&Situation::drawn(seed, congestion, 10_000)).unwrap()
    }

    /// The first situation in which the recording of a changed machine differs from that of the unchanged one.
    fn differing(congestion: &str, change: impl Fn(&Script) -> Recording) -> (Script, Recording) {
        let mut cases = (0..100).map(|seed| script(seed, congestion)).map(|script| (change(&script), script));
        let differs = |(changed, script): &(Recording, Script)| {
            first_difference(script, &play(script).unwrap(), changed, TOLERANCE).is_some()
        };
        let (changed, script) = cases.find(differs).expect("one of a hundred differs");
        (script, changed)
    }

    #[test]
    fn what_other_draws_have_changed_is_explained_by_them() {
        let draws = (0..100).map(|index| (index, 1000 + index as u64)).collect();
        let variation = Variation { draws, ..Variation::default() };
        let (script, changed) = differing("cdg", |script| play_with(script, &variation).unwrap());
        assert_eq!(explanation(&script, &changed, TOLERANCE), Some(Explanation::Draws));
    }

    #[test]
    fn a_clock_is_found_event_by_event() {
        let clocks = (0..100).step_by(7).map(|acks| (acks, acks as u64 % CLOCKS)).collect();
        let variation = Variation { clocks, ..Variation::default() };
        let (script, changed) = differing("reno", |script| play_with(script, &variation).unwrap());
        assert_eq!(explanation(&script, &changed, TOLERANCE), Some(Explanation::Clock));
        assert!(
            first_difference(&script, &closest(&script, &changed, TOLERANCE).unwrap(), &changed, TOLERANCE).is_none()
        );
    }

    #[test]
    fn another_window_is_not_explained() {
        let script = script(3, "reno");
        let mut changed = play(&script).unwrap();
        changed.states.last_mut().unwrap()[1].cwnd += 1;
        assert_eq!(explanation(&script, &changed, TOLERANCE), None);
    }
}
