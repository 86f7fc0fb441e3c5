//! Discern: a CUBIC window whose answer to a loss depends on evidence.
//!
//! A loss is congestion or it is not, and the two ask for opposite answers. The evidence is the queueing delay of the packets
//! after the lost one; where there is no delay, an experiment. Notation: window w; base RTT b (`delay.rs`: the minimum of 10 to
//! 20 s, of packets in order; of three to eight samples in a row the greatest); queueing delay q = RTT - b (the least of four samples);
//! random loss rate p̂, known from n̂ packets.
//!
//! 1. **Growth** (`window.rs`). Slow start until every q of a round is at least `clamp(b/8, 4 ms, 16 ms)`. Then CUBIC (RFC 9438:
//!    C = 0.4, β = 0.7, fast convergence, Reno-friendly); 5 % a round trip where no reduction is remembered.
//! 2. **A loss with delay is congestion**: `q >= θ`, `θ = max(b/16, clamp(5b, 50 us, 2 ms), theta q_max)`. `w <- β w`, once a
//!    round trip. Where p̂ > 0.3 %, where CUBIC cannot live, `β = clamp(0.97 b / RTT, 0.7, 0.95)`.
//! 3. **A loss without delay is judged by experiment** (`experiment.rs`). Where there are more than p̂ explains, the window is
//!    halved. Loss that stays all the same is random, and the window is given back.
//! 4. **Cap.** More than `0.08 n + 2 sqrt(0.08 n) + 2` of a round's n packets lost are congestion, whatever the delay.
//! 5. **Politeness** (`politeness.rs`): who finds, by backing off, that the standing queue is all his own keeps none.
//! 6. **Coupling** (`coupling.rs`): paths whose queueing delays move together share one CUBIC window.
//! 7. **Resumption** (`resume.rs`): a path that comes up again soon sends at half of its earlier window (RFC 9959).
//!
//! A path with a `weight` of N grows and falls as N CUBIC flows together do (`window.rs`).
//!
//! What cannot be had: where a full queue makes no delay above θ and more than `d (2 - L) / L` flows share it (d: the part that
//! an experiment takes of the window), no flow finds out by backing off that its losses L are congestion. What bounds the harm
//! there is the cap.
//!
//! Source: own algorithm. Its parts have these origins: loss with and without delay from Veno (Fu and Liew, JSAC 2003) and
//! Biaz and Vaidya (1998); whether others fill the queue, from Nimbus (Goyal et al., SIGCOMM 2022) and Copa (Arun and
//! Balakrishnan, NSDI 2018); one window for a shared bottleneck from RFC 3124, and its detection from RFC 8382; the window
//! from RFC 9438; ECN from RFC 8511.
//!
//! An ECN mark leaves 0.85 of the window (RFC 8511), in recovery too. A window that is not used is kept for five minutes, and
//! congestion reduces the used part of it (RFC 7661).
//!
//! Deviations from the other window-based algorithms here: the window falls at once, without proportional rate reduction, as
//! it is paced and most losses reduce nothing; it may grow during recovery, for the same reason; a tail-loss probe that
//! repaired a loss is no sign of congestion by itself. A loss without delay in the first slow start reduces nothing, but for
//! the cap.

mod config;
mod coupling;
mod delay;
mod experiment;
mod path;
mod politeness;
mod resume;
mod round;
mod window;

use crate::{
    AckSample, AlgorithmEntry, Constructor, Context, Controller, Decision, Deviation, Params, PathEvent, Properties,
};
use config::Config;
use coupling::Pairs;
use path::Path;
use units::{INFINITE_SSTHRESH, Instant, PathId};

/// Registration.
pub const ENTRY: AlgorithmEntry = AlgorithmEntry {
    name: "discern",
    aliases: &[],
    title: "CUBIC that tells random loss from congestion by delay and experiment; one window per shared bottleneck",
    source: "own algorithm (experimental), after RFC 9438",
    parameters: config::PARAMETERS,
    properties: Properties {
        single_path: None,
        deviations: &[(
            Deviation::KeepsCwndOnUndo,
            "one loss without delay reduces nothing; what losses did reduce is undone",
        )],
        ..Properties::DEFAULT
    },
    constructor: Constructor::Coupled(|params| Box::new(Discern::new(params))),
};

/// The paths of a connection.
#[derive(Debug)]
pub struct Discern {
    config: Config,
    /// By id; `None` where a path never came up.
    paths: Vec<Option<Path>>,
    pairs: Pairs,
}

impl Discern {
    fn new(params: &Params) -> Self {
        Self { config: Config::new(params), paths: Vec::new(), pairs: Pairs::default() }
    }

    /// The other paths in use that share the path's bottleneck.
    fn sharing(&self, path: usize, now: Instant) -> impl Iterator<Item = usize> {
        let couples = move |(other, state): &(usize, &Option<Path>)| {
            let is_in_use = state.as_ref().is_some_and(|state| state.is_in_use(now));
            self.config.couple && *other != path && is_in_use && self.pairs.is_shared(path, *other)
        };
        self.paths.iter().enumerate().filter(couples).map(|(other, _)| other)
    }

    fn on_ack(&mut self, index: usize, sample: &AckSample, cx: &mut Context<'_>) {
        let n = 1.0 + self.sharing(index, cx.now).count() as f64;
        let Some(Some(path)) = self.paths.get_mut(index) else { return };
        if path.on_ack(&self.config, n, sample, cx) {
            let others: Vec<usize> = self.sharing(index, cx.now).collect();
            for other in others {
                self.paths[other].iter_mut().for_each(|path| path.mirror(cx.now));
            }
        }
        self.compare(cx.now);
    }

    /// Compares the queueing delays of the paths that are in use.
    fn compare(&mut self, now: Instant) {
        if !self.config.couple || self.paths.len() < 2 || !self.pairs.is_due(now) {
            return;
        }
        let in_use = self.paths.iter().enumerate().filter_map(|(index, path)| {
            path.as_ref().filter(|path| path.is_in_use(now)).map(|path| (index, path.queueing()))
        });
        let in_use: Vec<(usize, f64)> = in_use.take(coupling::MAX_COMPARED).collect();
        for (position, second) in in_use.iter().enumerate() {
            in_use[..position].iter().for_each(|first| self.pairs.compare(*first, *second));
        }
    }
}

impl Controller for Discern {
    fn on_event(&mut self, path: PathId, event: &PathEvent, cx: &mut Context<'_>) {
        let index = path.index();
        if self.paths.len() <= index {
            self.paths.resize_with(index + 1, || None);
        }
        match event {
            PathEvent::PathUp(info) => {
                let earlier = self.paths[index].as_ref().filter(|_| self.config.resume);
                self.paths[index] = Some(Path::new(info, self.config.weight, earlier.and_then(Path::saved), cx.now));
                self.pairs.forget(index);
            }
            PathEvent::Ack(sample) => self.on_ack(index, sample, cx),
            _ => {}
        }
        if let Some(path) = &mut self.paths[index] {
            path.on_event(event, cx.now);
            path.note_use(event, cx.now);
        }
    }

    fn decision(&self, path: PathId) -> Decision {
        let state = self.paths.get(path.index()).and_then(Option::as_ref);
        state.map_or(Decision { cwnd: 1, ssthresh: INFINITE_SSTHRESH, pacing_rate: None }, Path::decision)
    }
}

#[cfg(test)]
mod tests;
#[cfg(test)]
mod theory;
