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
    /// Acknowledgements from which on the controller draws from another random stream: the index of each, and the seed of
    /// its stream.
    pub(crate) draws: Vec<(usize, u64)>,
}

/// A change that explains a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Explanation {
    /// The SYN leaves up to thirty microseconds later, single events come up to eight microseconds later, and packets of a burst
    /// leave one after another. RACK compares times of sending in microseconds, and timers are rounded to ticks.
    Clock,
    /// The controller draws other random numbers where the kernel did.
    Draws,
}

impl std::fmt::Display for Explanation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Clock => write!(f, "microseconds of clock difference"),
            Self::Draws => write!(f, "other draws of the controller"),
        }
    }
}

/// The first change, of a short list, with which our machine behaves as the kernel did.
#[must_use]
pub fn explanation(script: &Script, kernel: &Recording, tolerance: Tolerance) -> Option<Explanation> {
    let ours = closest(script, kernel, tolerance).ok()?;
    if first_difference(script, &ours, kernel, tolerance).is_none() {
        return Some(Explanation::Clock);
    }
    draws_of(script, kernel, tolerance).map(|_| Explanation::Draws)
}

/// Our recording with the clock with which it is the same as the kernel's for longest.
///
/// # Errors
/// There is no such algorithm.
pub fn closest(script: &Script, kernel: &Recording, tolerance: Tolerance) -> Result<Recording, String> {
    let mut best = None;
    for connect_us in CONNECT_US {
        let clocks = clocks_of(script, kernel, connect_us, tolerance);
        let ours = play_with(script, &Variation { clocks, connect_us, ..Variation::default() })?;
        let ack = first_difference(script, &ours, kernel, tolerance).map_or(usize::MAX, |difference| difference.ack);
        if best.as_ref().is_none_or(|(longest, _)| ack > *longest) {
            best = Some((ack, ours));
        }
        if ack == usize::MAX {
            break;
        }
    }
    best.map(|(_, ours)| ours).ok_or_else(|| "no clock was tried".to_owned())
}

/// Finds the kernel's clock, acknowledgement by acknowledgement: where the recordings differ, other clocks at one of the events
/// before are tried until the next difference is a later one.
fn clocks_of(script: &Script, kernel: &Recording, connect_us: u64, tolerance: Tolerance) -> Vec<(usize, u64)> {
    let difference = |clocks: &[(usize, u64)]| {
        let variation = Variation { clocks: clocks.to_vec(), connect_us, ..Variation::default() };
        let ours = play_with(script, &variation).ok()?;
        first_difference(script, &ours, kernel, tolerance).map(|difference| difference.ack)
    };
    let mut clocks: Vec<(usize, u64)> = Vec::new();
    while let Some(at) = difference(&clocks) {
        let changed = |event: usize, seed: u64| {
            let others = clocks.iter().copied().filter(|(other, _)| *other != event);
            others.chain([(event, seed)]).collect::<Vec<_>>()
        };
        let earlier = (at.saturating_sub(EVENTS)..=at).rev();
        let mut tried = earlier.flat_map(|event| (0..CLOCKS).map(move |seed| changed(event, seed)));
        match tried.find(|clocks| difference(clocks).is_none_or(|next| next > at)) {
            Some(better) => clocks = better,
            None => break,
        }
    }
    clocks
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
