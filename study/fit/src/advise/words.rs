//! Advice in plain words.

use super::candidate::Mode;
use super::choice::{Advice, Goal, Ranked};
use crate::fitting::Fit;
use crate::interval::Interval;
use crate::text::columns;
use crate::unknown::digits;

impl Goal {
    /// What an advice of this goal is for, after "for".
    fn purpose(self) -> &'static str {
        match self {
            Self::Throughput => "throughput",
            Self::Calls => "calls",
            Self::Web => "the web",
            Self::Fair => "throughput that leaves others their share",
        }
    }
}

/// `31.2 (28.4 to 34.1)`; `31.2` over links that a scenario gives, of which there is one set.
fn with_interval(interval: &Interval) -> String {
    let [median, low, high] = [interval.median, interval.low, interval.high].map(digits);
    if low == high { median } else { format!("{median} ({low} to {high})") }
}

impl Ranked {
    /// What it promises for a goal: `31.2 (28.4 to 34.1) Mbit/s`.
    #[must_use]
    pub fn promise(&self, goal: Goal) -> String {
        let goodput = format!("{} Mbit/s", with_interval(&self.goodput_mbps));
        match goal {
            Goal::Throughput => goodput,
            Goal::Calls => format!("{goodput}, delay of 95 % at most {} ms", with_interval(&self.delay_p95_ms)),
            Goal::Web => format!("an answer of 200 kB in {} ms", with_interval(&self.response_ms)),
            Goal::Fair => {
                format!("{goodput}, and {} Mbit/s for a download next to it", with_interval(&self.rival_mbps))
            }
        }
    }
}

impl Advice {
    /// The recommendation in one or two sentences.
    #[must_use]
    pub fn headline(&self) -> String {
        let Some(first) = self.ranked.first() else { return "Cannot tell: nothing was tried.".to_owned() };
        let (purpose, promise) = (self.goal.purpose(), first.promise(self.goal));
        let near = format!("within 5 % of the best in {} of {} fits", first.near_best, self.fits);
        if self.is_decided {
            return format!("For {purpose}: {}: {promise}, {near}.", first.candidate);
        }
        let measure = match self.measure.first() {
            Some(measure) => measure.clone(),
            None => "the links again, with more repetitions".to_owned(),
        };
        format!(
            "Cannot tell what is best for {purpose}: measure {measure}. Nearest is {}: {promise}, {near}.",
            first.candidate
        )
    }

    /// What there is without the advice, in one sentence; none if that was not tried.
    #[must_use]
    pub fn gain(&self) -> Option<String> {
        let (default, first) = (self.default.as_ref()?, self.ranked.first()?);
        let name = match default.candidate.mode {
            Mode::Tunnel | Mode::Relay => "The tunnel as it is",
            Mode::Single(_) | Mode::Mptcp => "MPTCP by default",
        };
        Some(match default.candidate == first.candidate {
            true => format!("{name}: nothing has to be changed."),
            false => format!("{name} ({}): {}.", default.candidate, default.promise(self.goal)),
        })
    }

    /// The advice for the terminal: the recommendation, a table of the finalists, and what was left out.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = self.headline() + "\n";
        self.gain().into_iter().for_each(|gain| text += &format!("{gain}\n"));
        let mut head = vec!["candidate", "mode", "near the best", "goodput, Mbit/s", "delay p95, ms"];
        match self.goal {
            Goal::Web => head.push("answer, ms"),
            Goal::Fair => head.push("others, Mbit/s"),
            Goal::Throughput | Goal::Calls => {}
        }
        let rows: Vec<Vec<String>> = self.ranked.iter().map(|of| self.row(of)).collect();
        let head: Vec<String> = head.into_iter().map(str::to_owned).collect();
        text += &format!("\n{}", columns(&[vec![head], rows].concat()));
        self.left_out.iter().for_each(|what| text += &format!("left out: {what}\n"));
        text
    }

    fn row(&self, of: &Ranked) -> Vec<String> {
        let mode = match of.candidate.mode {
            Mode::Single(_) => "single path",
            Mode::Mptcp => "MPTCP",
            Mode::Tunnel => "tunnel",
            Mode::Relay => "relay",
        };
        let mut row = vec![
            of.candidate.to_string(),
            mode.to_owned(),
            format!("{} of {}", of.near_best, self.fits),
            with_interval(&of.goodput_mbps),
            with_interval(&of.delay_p95_ms),
        ];
        match self.goal {
            Goal::Web => row.push(with_interval(&of.response_ms)),
            Goal::Fair => row.push(with_interval(&of.rival_mbps)),
            Goal::Throughput | Goal::Calls => {}
        }
        row
    }
}

impl Fit {
    /// What to measure so that more is known: kinds of probes that are missing, then unknowns that the measurement leaves open.
    #[must_use]
    pub fn to_measure(&self) -> Vec<String> {
        let has = |prefix: &str| self.observables.iter().any(|observable| observable.name.starts_with(prefix));
        let missing = [
            ("udp.", "the loss of UDP at a low rate"),
            ("tcp.bbr.", "a download by BBR"),
            ("tcp.cubic.", "a download by CUBIC"),
            ("parallel.", "several downloads at a time, such as `iperf3 -P 8` has"),
        ];
        let missing = missing.into_iter().filter(|(prefix, _)| !has(prefix)).map(|(_, what)| what.to_owned());
        let open = self.parameters.iter().filter(|parameter| !parameter.is_known);
        missing
            .chain(open.map(|parameter| format!("more repetitions ({} is not known)", parameter.unknown.key)))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_set_of_links_has_no_interval() {
        let with = |low, high| with_interval(&Interval { median: 31.2, low, high });
        let rounded = with(31.2, 31.2 * (1.0 + f64::EPSILON));
        assert_eq!([with(28.4, 34.1), with(31.2, 31.2), rounded], ["31.2 (28.4 to 34.1)", "31.2", "31.2"]);
    }
}
