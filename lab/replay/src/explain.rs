//! Named changes of our machine. A change that makes a difference disappear explains it.

use crate::difference::{Tolerance, first_difference};
use crate::machine::play_with;
use crate::recording::Recording;
use crate::script::Script;
use serde::{Deserialize, Serialize};
use units::RngStream;

/// Number of draws that are tried per lateness.
const LATENESSES: u64 = 40;
/// Number of random streams that are tried per acknowledgement.
const STREAMS: u64 = 100;
/// Upper bounds for the lateness of an event, microseconds. The smallest bound that explains a difference is reported.
const LATENESS_US: [u64; 3] = [3, 10, 30];
/// Number of bursts before a difference, and of times of each, that are tried.
const BURSTS: usize = 30;
const BURST_SEEDS: u64 = 16;
/// The greatest time by which a clock advances while a segment is sent, nanoseconds.
const SENDING_NS: u64 = 3000;

/// A modification of our machine.
#[derive(Clone, Debug, Default)]
pub(crate) struct Variation {
    /// The time by which its clock advances while it sends a super-segment, nanoseconds.
    pub(crate) sending_ns: u64,
    /// Bursts whose packets leave some tenths of a microsecond after one another, on a clock of microseconds: the number of
    /// acknowledgements before the burst, and the seed of its times.
    pub(crate) bursts: Vec<(usize, u64)>,
    /// Acknowledgements from which on the controller draws from another random stream: the index of each, and the seed of
    /// its stream.
    pub(crate) draws: Vec<(usize, u64)>,
}

/// A change that explains a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Explanation {
    /// Events come some microseconds later, and sending takes time. The two sides differ by less than the resolution of a
    /// clock.
    Microseconds(u64),
    /// The packets of a burst leave tenths of a microsecond after one another. RACK compares their times of sending, in
    /// microseconds.
    Bursts,
    /// The controller draws other random numbers where the kernel did.
    Draws,
}

impl std::fmt::Display for Explanation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Microseconds(most) => write!(f, "up to {most} us of clock difference"),
            Self::Bursts => write!(f, "times within a burst"),
            Self::Draws => write!(f, "other draws of the controller"),
        }
    }
}

/// The first change, of a short list, with which our machine behaves as the kernel did.
#[must_use]
pub fn explanation(script: &Script, kernel: &Recording, tolerance: Tolerance) -> Option<Explanation> {
    let agrees = |changed: &Script, variation: &Variation| {
        let ours = play_with(changed, variation).ok();
        ours.is_some_and(|ours| first_difference(script, &ours, kernel, tolerance).is_none())
    };
    let by_microseconds = |most: &u64| {
        (0..LATENESSES).any(|draw| {
            let (changed, sending_ns) = delayed(script, *most, draw);
            agrees(&changed, &Variation { sending_ns, ..Variation::default() })
        })
    };
    if agrees(script, &Variation { bursts: bursts_of(script, kernel, tolerance), ..Variation::default() }) {
        return Some(Explanation::Bursts);
    }
    let most = LATENESS_US.iter().find(|most| by_microseconds(most));
    let by_draws = || draws_of(script, kernel, tolerance).map(|_| Explanation::Draws);
    most.map(|most| Explanation::Microseconds(*most)).or_else(by_draws)
}

/// Our recording with those times within bursts with which it is the same as the kernel's for longest.
///
/// # Errors
/// There is no such algorithm.
pub fn closest(script: &Script, kernel: &Recording, tolerance: Tolerance) -> Result<Recording, String> {
    play_with(script, &Variation { bursts: bursts_of(script, kernel, tolerance), ..Variation::default() })
}

/// Finds times of the kernel's bursts, acknowledgement by acknowledgement: where the recordings differ, other times of one of
/// the bursts before are tried until the next difference is a later one.
fn bursts_of(script: &Script, kernel: &Recording, tolerance: Tolerance) -> Vec<(usize, u64)> {
    let difference = |bursts: &[(usize, u64)]| {
        let ours = play_with(script, &Variation { bursts: bursts.to_vec(), ..Variation::default() }).ok()?;
        first_difference(script, &ours, kernel, tolerance).map(|difference| difference.ack)
    };
    let mut bursts: Vec<(usize, u64)> = Vec::new();
    while let Some(at) = difference(&bursts) {
        let changed = |burst: usize, seed: u64| {
            let others = bursts.iter().copied().filter(|(other, _)| *other != burst);
            others.chain([(burst, seed)]).collect::<Vec<_>>()
        };
        let earlier = (at.saturating_sub(BURSTS)..=at).rev();
        let mut tried = earlier.flat_map(|burst| (0..BURST_SEEDS).map(move |seed| changed(burst, seed)));
        match tried.find(|bursts| difference(bursts).is_none_or(|next| next > at)) {
            Some(better) => bursts = better,
            None => break,
        }
    }
    bursts
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

/// The script with each event delayed by less than `most`. Every second draw also has a time that sending takes.
fn delayed(script: &Script, most: u64, draw: u64) -> (Script, u64) {
    let mut rng = RngStream::named(draw, "lateness");
    let mut changed = script.clone();
    let setup = &mut changed.setup;
    let writes = changed.writes.iter_mut().map(|write| &mut write.at_us);
    let acks = changed.acks.iter_mut().map(|ack| &mut ack.at_us);
    for at_us in [&mut setup.connect_us, &mut setup.established_us].into_iter().chain(writes).chain(acks) {
        *at_us += rng.below(most);
    }
    let sending_ns = if draw.is_multiple_of(2) { 0 } else { rng.below(SENDING_NS) };
    (changed, sending_ns)
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
    fn what_a_clock_or_other_draws_have_changed_is_explained_by_them() {
        let (script, changed) = differing("cubic", |script| {
            let (delayed, sending_ns) = delayed(script, 10, 1);
            play_with(&delayed, &Variation { sending_ns, ..Variation::default() }).unwrap()
        });
        let explained = explanation(&script, &changed, TOLERANCE);
        assert!(matches!(explained, Some(Explanation::Microseconds(_) | Explanation::Bursts)), "{explained:?}");
        let draws = (0..100).map(|index| (index, 1000 + index as u64)).collect();
        let variation = Variation { draws, ..Variation::default() };
        let (script, changed) = differing("cdg", |script| play_with(script, &variation).unwrap());
        assert_eq!(explanation(&script, &changed, TOLERANCE), Some(Explanation::Draws));
    }

    #[test]
    fn times_within_bursts_are_found_burst_by_burst() {
        let bursts = (0..100).map(|acks| (acks, 1000 + acks as u64)).collect();
        let variation = Variation { bursts, ..Variation::default() };
        let (script, changed) = differing("reno", |script| play_with(script, &variation).unwrap());
        assert_eq!(explanation(&script, &changed, TOLERANCE), Some(Explanation::Bursts));
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
