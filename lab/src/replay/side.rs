//! What a campaign compares: the sender or the receiver.

use super::judge::Judge;
use crate::Error;
use replay::{Coverage, Difference, Explanation, Recording, Script, Situation, Tolerance, receiving};
use serde::Serialize;

/// A side of a connection: its scripts, and how they are played and compared.
pub(super) trait Side {
    type Script: Clone + PartialEq + Serialize;
    type Recording: Clone + Serialize;

    /// The name of its campaign.
    fn name(&self) -> &str;

    /// The script of a seed, for a kernel with this tick.
    fn script(&self, seed: u64, judge: &Judge) -> Result<Self::Script, String>;

    fn play(judge: &Judge, scripts: &[Self::Script]) -> Result<Vec<Self::Recording>, Error>;

    /// Our machine's recording.
    fn ours(script: &Self::Script) -> Result<Self::Recording, String>;

    fn difference(
        script: &Self::Script,
        ours: &Self::Recording,
        kernel: &Self::Recording,
        tolerance: Tolerance,
    ) -> Option<Difference>;

    /// The script with the times at which a kernel in real time took its events.
    fn as_played(script: &Self::Script, _: &Self::Recording) -> Self::Script {
        script.clone()
    }

    /// The named change that makes the difference disappear.
    fn explanation(_: &Self::Script, _: &Self::Recording, _: Tolerance) -> Option<Explanation> {
        None
    }

    /// Our recording that is the same as the kernel's for longest.
    fn closest(script: &Self::Script, _: &Self::Recording, _: Tolerance) -> Result<Self::Recording, String> {
        Self::ours(script)
    }

    fn timeline(
        script: &Self::Script,
        ours: &Self::Recording,
        kernel: &Self::Recording,
        difference: &Difference,
    ) -> String;

    /// Shorter scripts to try.
    fn candidates(script: &Self::Script, difference: &Difference) -> Vec<Self::Script>;

    /// Number of events of a script.
    fn len(script: &Self::Script) -> usize;

    /// The greatest lateness of an event, microseconds.
    fn late_us(recording: &Self::Recording) -> u64;

    /// Counts the transitions of a recording.
    fn cover(_: &mut Coverage, _: &Self::Script, _: &Self::Recording) {}
}

/// Our sender, with a congestion control.
pub(super) struct Senders<'a> {
    pub(super) congestion: &'a str,
}

impl Side for Senders<'_> {
    type Script = Script;
    type Recording = Recording;

    fn name(&self) -> &str {
        self.congestion
    }

    fn script(&self, seed: u64, judge: &Judge) -> Result<Script, String> {
        replay::script_of(&Situation::drawn(seed, self.congestion, judge.kernel()))
    }

    fn play(judge: &Judge, scripts: &[Script]) -> Result<Vec<Recording>, Error> {
        judge.play(scripts)
    }

    fn ours(script: &Script) -> Result<Recording, String> {
        replay::play(script)
    }

    fn as_played(script: &Script, recording: &Recording) -> Script {
        script.as_played(recording)
    }

    fn difference(script: &Script, ours: &Recording, kernel: &Recording, tolerance: Tolerance) -> Option<Difference> {
        replay::first_difference(script, ours, kernel, tolerance)
    }

    fn explanation(script: &Script, kernel: &Recording, tolerance: Tolerance) -> Option<Explanation> {
        replay::explanation(script, kernel, tolerance)
    }

    fn closest(script: &Script, kernel: &Recording, tolerance: Tolerance) -> Result<Recording, String> {
        replay::closest(script, kernel, tolerance)
    }

    fn timeline(script: &Script, ours: &Recording, kernel: &Recording, difference: &Difference) -> String {
        replay::timeline(script, ours, kernel, difference)
    }

    fn candidates(script: &Script, difference: &Difference) -> Vec<Script> {
        replay::candidates(script, difference)
    }

    fn len(script: &Script) -> usize {
        script.acks.len()
    }

    fn late_us(recording: &Recording) -> u64 {
        recording.late_us
    }

    fn cover(coverage: &mut Coverage, script: &Script, recording: &Recording) {
        coverage.add(script, recording);
    }
}

/// Our receiver.
pub(super) struct Receivers;

impl Side for Receivers {
    type Script = receiving::Script;
    type Recording = receiving::Recording;

    fn name(&self) -> &str {
        "receiver"
    }

    fn script(&self, seed: u64, judge: &Judge) -> Result<Self::Script, String> {
        Ok(receiving::script_of(seed, judge.kernel()))
    }

    fn play(judge: &Judge, scripts: &[Self::Script]) -> Result<Vec<Self::Recording>, Error> {
        judge.play_receivers(scripts)
    }

    fn ours(script: &Self::Script) -> Result<Self::Recording, String> {
        Ok(receiving::play(script))
    }

    fn difference(
        script: &Self::Script,
        ours: &Self::Recording,
        kernel: &Self::Recording,
        tolerance: Tolerance,
    ) -> Option<Difference> {
        receiving::first_difference(script, ours, kernel, tolerance)
    }

    fn timeline(
        script: &Self::Script,
        ours: &Self::Recording,
        kernel: &Self::Recording,
        difference: &Difference,
    ) -> String {
        receiving::timeline(script, ours, kernel, difference)
    }

    fn candidates(script: &Self::Script, difference: &Difference) -> Vec<Self::Script> {
        receiving::candidates(script, difference)
    }

    fn len(script: &Self::Script) -> usize {
        script.events.len()
    }

    fn late_us(recording: &Self::Recording) -> u64 {
        recording.late_us
    }
}
