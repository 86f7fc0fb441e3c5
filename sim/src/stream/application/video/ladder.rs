//! The choice of a video's rate from its bitrate ladder, group by group.
//!
//! **Stored**: by the level of the player's buffer, as in BBA-0 (Huang, Johari, McKeown, Trunnell and Watson 2014, algorithm
//! 1). A line maps the buffer to a rate, from the lowest at the reservoir to the highest at its end; the rate changes when
//! the line passes the next higher or the next lower one. The paper has a buffer of 240 s, a reservoir of 90 s and an end at
//! 90 %; the same shares are taken here of what the buffer can hold when a group is asked for. A link between two rates is
//! shared between them.
//!
//! **Live**: by the backlog, much as receiver-driven layered multicast tries rates (McCanne, Jacobson and Vetterli 1996). A
//! source that sends what it captures cannot measure unused capacity: it has to try a higher rate. The backlog is the
//! age of the oldest frame that has not arrived, beyond the smallest delay of a frame. If it exceeds a quarter of the
//! latency and does not shrink, the rate goes down to what was delivered since the last group; after [`JOIN_GROUPS`] groups
//! without backlog it goes up by one. A step up that fails doubles that number; one that succeeds resets it. The source
//! knows at once what has arrived; in reality it would know half an RTT later.

use units::{Rate, Span};

/// Groups without backlog before a higher rate is tried (the join timer of the paper).
const JOIN_GROUPS: u32 = 2;
/// The maximum number of groups after failures.
const MAX_JOIN_GROUPS: u32 = 64;
/// The tolerated backlog is the latency divided by this.
const BACKLOG_DIVISOR: u64 = 4;
/// BBA-0's reservoir and upper end, as shares of the buffer: 90 s of 240 s, and 90 %.
const RESERVOIR: f64 = 90.0 / 240.0;
const END: f64 = 0.9;

/// The rates of a video, and the current one.
#[derive(Debug)]
pub(super) struct Ladder {
    rates: Vec<Rate>,
    rung: usize,
    pub rate_switches: u64,
    /// Live: groups in a row without backlog, and the number after which the next rate is tried.
    clear_groups: u32,
    join_groups: u32,
    /// Whether the latest step was upwards.
    stepped_up: bool,
    backlog: Span,
}

impl Ladder {
    pub(super) fn new(rates: Vec<Rate>) -> Self {
        Self {
            rates,
            rung: 0,
            rate_switches: 0,
            clear_groups: 0,
            join_groups: JOIN_GROUPS,
            stepped_up: false,
            backlog: Span::ZERO,
        }
    }

    pub(super) fn rate(&self) -> Rate {
        self.rates[self.rung]
    }

    /// Whether there is more than one rate.
    pub(super) fn adapts(&self) -> bool {
        self.rates.len() > 1
    }

    /// Chooses for a group of stored video: `level` of the player's buffer `capacity` is filled.
    pub(super) fn choose_by_buffer(&mut self, level: Span, capacity: Span) {
        let top = self.rates.len() - 1;
        let share = level.0 as f64 / capacity.0.max(1) as f64;
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
        self.set_rung(rung);
    }

    /// Chooses for a group of live video, given the backlog and the rate `delivered` since the last group.
    pub(super) fn choose_by_backlog(&mut self, backlog: Span, latency: Span, delivered: Rate) {
        let prior_backlog = std::mem::replace(&mut self.backlog, backlog);
        if backlog * BACKLOG_DIVISOR > latency {
            self.clear_groups = 0;
            if backlog >= prior_backlog && self.rung > 0 {
                self.step_down(delivered);
            }
            return;
        }
        self.clear_groups += 1;
        if self.clear_groups >= self.join_groups && self.rung + 1 < self.rates.len() {
            if self.stepped_up {
                self.join_groups = JOIN_GROUPS;
            }
            (self.clear_groups, self.stepped_up) = (0, true);
            self.set_rung(self.rung + 1);
        }
    }

    fn step_down(&mut self, delivered: Rate) {
        if self.stepped_up {
            self.join_groups = (self.join_groups * 2).min(MAX_JOIN_GROUPS);
        }
        self.stepped_up = false;
        let carried = self.rates.iter().rposition(|rate| *rate <= delivered).unwrap_or(0);
        self.set_rung(carried.min(self.rung - 1));
    }

    fn set_rung(&mut self, rung: usize) {
        self.rate_switches += u64::from(rung != self.rung);
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
        let mut rate_at = |level: f64| {
            ladder.choose_by_buffer(secs(level), secs(240.0));
            ladder.rate().as_mbps()
        };
        assert_eq!([50.0, 100.0, 121.0].map(&mut rate_at), [1.0; 3]);
        assert_eq!([122.0, 152.0, 91.0].map(&mut rate_at), [3.0; 3], "it stays until the line is at the next rate");
        assert_eq!(rate_at(90.0), 1.0, "nothing but the lowest in the reservoir");
        assert_eq!(rate_at(160.0), 5.0, "two at once");
        assert_eq!([217.0, 160.0].map(&mut rate_at), [9.0; 2]);
        // Below 153 s the line is below 5 Mbit/s, the next lower rate: the lowest above the line.
        assert_eq!([150.0, 110.0].map(&mut rate_at), [5.0, 3.0]);
    }

    #[test]
    fn a_backlog_lowers_the_rate_to_what_arrives_and_failed_steps_delay_the_next() {
        let mut ladder = ladder();
        let latency = secs(0.4);
        let mut group = |backlog: f64, mbit| {
            ladder.choose_by_backlog(secs(backlog), latency, Rate::from_mbit(mbit));
            ladder.rate().as_mbps()
        };
        let rates: Vec<f64> = (0..6).map(|_| group(0.0, 1)).collect();
        assert_eq!(rates, [1.0, 3.0, 3.0, 5.0, 5.0, 9.0]);
        assert_eq!(group(0.11, 6), 5.0, "to the highest below what arrived");
        assert_eq!(group(0.105, 6), 5.0, "the backlog shrinks: the rate stays");
        let rates: Vec<f64> = (0..4).map(|_| group(0.0, 5)).collect();
        assert_eq!(rates, [5.0, 5.0, 5.0, 9.0], "twice as many groups");
        assert_eq!(group(0.2, 2), 1.0);
    }
}
