//! Which of its rates a video takes, group by group.
//!
//! **Stored**: by the player's buffer, as BBA-0 (Huang, Johari, McKeown, Trunnell and Watson 2014, algorithm 1). A line
//! maps the buffer to a rate, from the lowest at the reservoir to the highest at its end; the rate changes when the line
//! passes the next higher or the next lower one. The paper has a buffer of 240 s, a reservoir of 90 s and an end at 90 %;
//! the same shares are taken here of what the buffer can hold when a group is asked for. A link between two rates is
//! shared between them.
//!
//! **Live**: by what is behind, as a receiver-driven layered multicast tries rates (McCanne, Jacobson and Vetterli 1996).
//! A source that sends what it captures never learns what more the path had: it has to try. What counts is how much later
//! than the fastest frame so far the oldest frame that has not arrived is. Beyond a quarter of the latency, and not
//! getting less, the rate goes down to what was delivered since the last group; after [`PATIENCE`] groups that were not
//! behind it goes up by one. Each step up that fails doubles the patience, one that holds sets it back. What has arrived
//! is known at once here; in truth half a round trip later.

use units::{Rate, Span};

/// Groups without backlog before a higher rate is tried.
const PATIENCE: u32 = 2;
/// And after failures, at most.
const MOST_PATIENCE: u32 = 64;
/// Share of the latency that a backlog may have.
const TOLERATED: u64 = 4;
/// BBA-0: 90 s of a buffer of 240 s; and 90 %.
const RESERVOIR: f64 = 90.0 / 240.0;
const END: f64 = 0.9;

/// The rates, and the present one.
#[derive(Debug)]
pub(super) struct Ladder {
    rates: Vec<Rate>,
    rung: usize,
    pub switches: u64,
    /// Live: groups in a row that were not behind, and how many it takes.
    calm: u32,
    patience: u32,
    /// The latest step was one up.
    climbed: bool,
    backlog: Span,
}

impl Ladder {
    pub(super) fn new(rates: Vec<Rate>) -> Self {
        Self { rates, rung: 0, switches: 0, calm: 0, patience: PATIENCE, climbed: false, backlog: Span::ZERO }
    }

    pub(super) fn rate(&self) -> Rate {
        self.rates[self.rung]
    }

    /// There is a choice.
    pub(super) fn adapts(&self) -> bool {
        self.rates.len() > 1
    }

    /// A group of stored video is asked for while the player has `level` of `room` for media.
    pub(super) fn choose_by_buffer(&mut self, level: Span, room: Span) {
        let top = self.rates.len() - 1;
        let share = level.0 as f64 / room.0.max(1) as f64;
        let (low, high) = (self.rates[0].0 as f64, self.rates[top].0 as f64);
        let line = low + (high - low) * ((share - RESERVOIR) / (END - RESERVOIR)).clamp(0.0, 1.0);
        let reaches = |rung: usize| line >= self.rates[rung].0 as f64;
        let rung = if share <= RESERVOIR {
            0
        } else if share >= END {
            top
        } else if reaches((self.rung + 1).min(top)) {
            // The highest rate below the line.
            (0..=top).rev().find(|rung| reaches(*rung)).unwrap_or(0).max(self.rung)
        } else if !reaches(self.rung.saturating_sub(1)) {
            // The lowest rate above the line.
            (0..=top).find(|rung| !reaches(*rung)).unwrap_or(top).min(self.rung)
        } else {
            self.rung
        };
        self.take(rung);
    }

    /// A group of live video is captured. The oldest frame on its way is `backlog` behind; `delivered` is the rate since
    /// the last group.
    pub(super) fn choose_by_backlog(&mut self, backlog: Span, latency: Span, delivered: Rate) {
        let before = std::mem::replace(&mut self.backlog, backlog);
        if backlog * TOLERATED > latency {
            self.calm = 0;
            if backlog >= before && self.rung > 0 {
                self.fall(delivered);
            }
            return;
        }
        self.calm += 1;
        if self.calm >= self.patience && self.rung + 1 < self.rates.len() {
            if self.climbed {
                self.patience = PATIENCE;
            }
            (self.calm, self.climbed) = (0, true);
            self.take(self.rung + 1);
        }
    }

    fn fall(&mut self, delivered: Rate) {
        if self.climbed {
            self.patience = (self.patience * 2).min(MOST_PATIENCE);
        }
        self.climbed = false;
        let carried = self.rates.iter().rposition(|rate| *rate <= delivered).unwrap_or(0);
        self.take(carried.min(self.rung - 1));
    }

    fn take(&mut self, rung: usize) {
        self.switches += u64::from(rung != self.rung);
        self.rung = rung;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ladder() -> Ladder {
        Ladder::new([1, 3, 5, 9].map(Rate::from_mbit).to_vec())
    }

    fn secs(s: f64) -> Span {
        Span::from_secs_f64(s)
    }

    /// Reservoir 90 s, end 216 s: the line reaches 3, 5 and 9 Mbit/s at 121.5, 153 and 216 s.
    #[test]
    fn the_buffer_chooses_as_in_bba_0() {
        let mut ladder = ladder();
        let mut at = |level: f64| {
            ladder.choose_by_buffer(secs(level), secs(240.0));
            ladder.rate().as_mbps()
        };
        assert_eq!([50.0, 100.0, 121.0].map(&mut at), [1.0; 3]);
        assert_eq!([122.0, 152.0, 91.0].map(&mut at), [3.0; 3], "it stays until the line is at the next rate");
        assert_eq!(at(90.0), 1.0, "nothing but the lowest in the reservoir");
        assert_eq!(at(160.0), 5.0, "two at once");
        assert_eq!([217.0, 160.0].map(&mut at), [9.0; 2]);
        // Below 153 s the line is below 5 Mbit/s, the next lower rate: the lowest above the line.
        assert_eq!([150.0, 110.0].map(&mut at), [5.0, 3.0]);
    }

    #[test]
    fn a_backlog_lowers_the_rate_to_what_arrives_and_failures_make_patient() {
        let mut ladder = ladder();
        let latency = secs(0.4);
        let mut group = |backlog: f64, mbit| {
            ladder.choose_by_backlog(secs(backlog), latency, Rate::from_mbit(mbit));
            ladder.rate().as_mbps()
        };
        let calm: Vec<f64> = (0..6).map(|_| group(0.0, 1)).collect();
        assert_eq!(calm, [1.0, 3.0, 3.0, 5.0, 5.0, 9.0]);
        assert_eq!(group(0.11, 6), 5.0, "to the highest below what arrived");
        assert_eq!(group(0.105, 6), 5.0, "it gets less: the rate holds");
        let calm: Vec<f64> = (0..4).map(|_| group(0.0, 5)).collect();
        assert_eq!(calm, [5.0, 5.0, 5.0, 9.0], "twice the patience");
        assert_eq!(group(0.2, 2), 1.0);
    }
}
