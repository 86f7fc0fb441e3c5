//! Named changes of our machine. A change that makes a difference disappear explains it.

use crate::difference::{Place, Tolerance, first_difference};
use crate::machine::{Chances, extreme_streams, play_noting_chances};
use crate::recording::Recording;
use crate::script::Script;
use serde::{Deserialize, Serialize};

/// Number of events before a difference, and of clocks at each, that are tried.
const EVENTS: usize = 30;
const CLOCKS: u64 = 32;
/// Number of random streams that are tried per acknowledgement, after those that decide nearly any chance both ways.
const STREAMS: u64 = 100;
/// Delays of the SYN that are tried, microseconds: a kernel prepares a connection for that long.
const CONNECT_US: [u64; 4] = [0, 10, 20, 30];

/// A modification of our machine.
#[derive(Clone, Debug, Default)]
pub(crate) struct Variation {
    /// Events at which its clock is some microseconds late, whose packets leave tenths of a microsecond after one another, and
    /// after which the state is read some microseconds later: the number of acknowledgements so far, and the seed of the times.
    pub(crate) clocks: Vec<(usize, u64)>,
    /// Microseconds by which the SYN leaves late, so that the first RTT is shorter.
    pub(crate) connect_us: u64,
    /// The numbers of acknowledgements at whose tick another timer of the host expires, if timers expire by what the kernel's
    /// wheel remembers.
    pub(crate) other_timers: Option<Vec<usize>>,
    /// Acknowledgements from which on the controller draws from another random stream: the index of each, and the seed of
    /// its stream.
    pub(crate) draws: Vec<(usize, u64)>,
    /// Whether the kernel was one in real time, whose events and pacing may be up to 800 microseconds late.
    pub(crate) is_real_time: bool,
    /// The timers, by their numbers, that expire a tick late.
    pub(crate) late_timers: Vec<usize>,
}

impl Variation {
    /// With the clock of this seed at an event.
    fn with_clock(&self, event: usize, seed: u64) -> Self {
        let others = self.clocks.iter().copied().filter(|(other, _)| *other != event);
        Self { clocks: others.chain([(event, seed)]).collect(), ..self.clone() }
    }

    /// With draws from the stream of this seed from an acknowledgement on, until the next one that has a stream.
    fn with_draw(&self, ack: usize, seed: u64) -> Self {
        let others = self.draws.iter().copied().filter(|(other, _)| *other != ack);
        Self { draws: others.chain([(ack, seed)]).collect(), ..self.clone() }
    }

    /// With a timer that expires a tick late; `None` if it does already.
    fn with_late_timer(&self, timer: usize) -> Option<Self> {
        (!self.late_timers.contains(&timer))
            .then(|| Self { late_timers: [&self.late_timers[..], &[timer]].concat(), ..self.clone() })
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
    /// leave one after another. The state is read up to eight microseconds after an event, when a timer or the application may
    /// have sent more. RACK compares times of sending in microseconds, and timers are rounded to ticks. On a kernel in real
    /// time, events and the timer of the pacer may be up to 800 microseconds late.
    Clock,
    /// Timers of 63 ticks or more expire by what the kernel's timer wheel remembers: a timer that is set to the same tick again
    /// keeps its bucket, and one that is set when a timer of the host has just expired is a tick nearer.
    Timers,
    /// Timers expire a tick late, on a kernel in real time: the processor whose tick it is may not see yet that another one
    /// has counted it.
    Ticks,
    /// The controller draws other random numbers where the kernel did, with the kernel's clock.
    Draws,
}

impl std::fmt::Display for Explanation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Clock => write!(f, "microseconds of clock difference"),
            Self::Timers => write!(f, "the memory of the timer wheel"),
            Self::Ticks => write!(f, "timers that expire a tick late"),
            Self::Draws => write!(f, "other draws of the controller"),
        }
    }
}

/// The first change, of a short list, with which our machine behaves as the kernel did.
#[must_use]
pub fn explanation(script: &Script, kernel: &Recording, tolerance: Tolerance) -> Option<Explanation> {
    let closest = closest_variation(script, kernel, tolerance).ok()?;
    closest.differs_at.is_none().then_some(match closest.variation {
        Variation { draws, .. } if !draws.is_empty() => Explanation::Draws,
        Variation { late_timers, .. } if !late_timers.is_empty() => Explanation::Ticks,
        Variation { other_timers: Some(_), .. } => Explanation::Timers,
        _ => Explanation::Clock,
    })
}

/// Our recording with the clock, the timers and the draws with which it is the same as the kernel's for longest.
///
/// # Errors
/// There is no such algorithm.
pub fn closest(script: &Script, kernel: &Recording, tolerance: Tolerance) -> Result<Recording, String> {
    closest_variation(script, kernel, tolerance).map(|closest| closest.ours)
}

/// A play of a changed machine.
struct Play {
    variation: Variation,
    ours: Recording,
    /// The acknowledgement at which it differs from the kernel, the packets sent until then, and the place.
    differs_at: Option<(usize, usize, Place)>,
    chances: Chances,
}

impl Play {
    /// # Errors
    /// There is no such algorithm.
    fn of(script: &Script, kernel: &Recording, tolerance: Tolerance, variation: Variation) -> Result<Self, String> {
        let (ours, chances) = play_noting_chances(script, &variation)?;
        let difference = first_difference(script, &ours, kernel, tolerance);
        let differs_at = difference.map(|difference| (difference.ack, difference.sent, difference.place));
        Ok(Self { variation, ours, differs_at, chances })
    }

    /// Whether it is the same as the kernel for longer than another play.
    fn is_longer_than(&self, other: &Self) -> bool {
        other.differs_at.is_some_and(|at| self.differs_at.is_none_or(|own| own > at))
    }
}

/// Draws are tried last, because the others explain more.
fn closest_variation(script: &Script, kernel: &Recording, tolerance: Tolerance) -> Result<Play, String> {
    let is_real_time = kernel.played.is_some();
    let clocks = |other_timers: Option<Vec<usize>>| {
        CONNECT_US.map(|connect_us| {
            (Variation { connect_us, other_timers: other_timers.clone(), is_real_time, ..Variation::default() }, false)
        })
    };
    let with_draws = (Variation { is_real_time, ..Variation::default() }, true);
    let all = clocks(None).into_iter().chain(clocks(Some(Vec::new()))).chain([with_draws]);
    let mut best: Option<Play> = None;
    for (variation, may_draw) in all {
        let play = nearer(script, kernel, tolerance, Play::of(script, kernel, tolerance, variation)?, may_draw);
        if best.as_ref().is_none_or(|best| play.is_longer_than(best)) {
            best = Some(play);
        }
        if best.as_ref().is_some_and(|best| best.differs_at.is_none()) {
            break;
        }
    }
    best.ok_or_else(|| "no clock was tried".to_owned())
}

/// Finds the kernel's clock, its other timers and its draws, acknowledgement by acknowledgement: where the recordings differ,
/// another one at one of the events before is tried until the next difference is a later one.
fn nearer(script: &Script, kernel: &Recording, tolerance: Tolerance, mut play: Play, may_draw: bool) -> Play {
    let extremes = if may_draw { extreme_streams() } else { [0; 2] };
    while let Some((at, ..)) = play.differs_at {
        let Play { variation, chances: Chances { drawn, timers }, .. } = &play;
        // The last one is the acknowledgement itself.
        let earlier = || (at.saturating_sub(EVENTS)..=at + 1).rev();
        // What is drawn may show later, in the time at which the next packet leaves.
        let drawing = || earlier().filter(|event| may_draw && drawn.contains(event));
        let with_extreme = drawing().flat_map(|event| extremes.map(|seed| variation.with_draw(event, seed)));
        let with_draw = drawing().flat_map(|event| (1..STREAMS).map(move |seed| variation.with_draw(event, seed)));
        let with_draw = with_extreme.chain(with_draw);
        let with_timer = earlier().filter_map(|event| variation.with_timer(event));
        let with_clock = earlier().flat_map(|event| (0..CLOCKS).map(move |seed| variation.with_clock(event, seed)));
        let late = (0..*timers).rev().filter(|_| variation.is_real_time);
        let with_late = late.filter_map(|timer| variation.with_late_timer(timer));
        let tried = with_draw.chain(with_late).chain(with_timer).chain(with_clock);
        let mut plays = tried.filter_map(|variation| Play::of(script, kernel, tolerance, variation).ok());
        match plays.find(|tried| tried.is_longer_than(&play)) {
            Some(better) => play = better,
            None => break,
        }
    }
    play
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::play_with;
    use crate::recording::Played;
    use crate::{Situation, play, script_of};

    fn script(seed: u64, congestion: &str) -> Script {
        script_of(&Situation::drawn(
            seed,
            congestion,
            crate::Kernel { release: control::LinuxRelease::V6_1, tick_us: 10_000, max_header: 256 },
        ))
        .unwrap()
    }

    /// The first situation in which the recording of a changed machine differs from that of the unchanged one.
    fn differing(congestion: &str, change: impl Fn(&Script) -> Recording) -> (Script, Recording) {
        let mut cases = (0..100).map(|seed| script(seed, congestion)).map(|script| (change(&script), script));
        let differs = |(changed, script): &(Recording, Script)| {
            first_difference(script, &play(script).unwrap(), changed, Tolerance::VIRTUAL).is_some()
        };
        let (changed, script) = cases.find(differs).expect("one of a hundred differs");
        (script, changed)
    }

    #[test]
    fn what_other_draws_have_changed_is_explained_by_them() {
        let draws = (0..100).map(|index| (index, 1000 + index as u64)).collect();
        let variation = Variation { draws, ..Variation::default() };
        let (script, changed) = differing("cdg", |script| play_with(script, &variation).unwrap());
        assert_eq!(explanation(&script, &changed, Tolerance::VIRTUAL), Some(Explanation::Draws));
    }

    #[test]
    fn a_clock_is_found_event_by_event() {
        let clocks = (0..100).step_by(7).map(|acks| (acks, acks as u64 % CLOCKS)).collect();
        let variation = Variation { clocks, ..Variation::default() };
        let (script, changed) = differing("reno", |script| play_with(script, &variation).unwrap());
        assert_eq!(explanation(&script, &changed, Tolerance::VIRTUAL), Some(Explanation::Clock));
        assert!(
            first_difference(
                &script,
                &closest(&script, &changed, Tolerance::VIRTUAL).unwrap(),
                &changed,
                Tolerance::VIRTUAL
            )
            .is_none()
        );
    }

    #[test]
    fn timers_are_a_tick_late_only_in_real_time() {
        let variation = Variation { late_timers: (0..100).step_by(3).collect(), ..Variation::default() };
        let (script, mut changed) = differing("reno", |script| play_with(script, &variation).unwrap());
        assert_ne!(explanation(&script, &changed, Tolerance::VIRTUAL), Some(Explanation::Ticks));
        changed.played = Some(Played::default());
        assert_eq!(explanation(&script, &changed, Tolerance::VIRTUAL), Some(Explanation::Ticks));
    }

    #[test]
    fn another_window_is_not_explained() {
        let script = script(3, "reno");
        let mut changed = play(&script).unwrap();
        changed.states.last_mut().unwrap()[1].cwnd += 1;
        assert_eq!(explanation(&script, &changed, Tolerance::VIRTUAL), None);
    }
}
