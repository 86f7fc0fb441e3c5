//! The budget of a search: a time, or a number of evaluations.

use std::time::{Duration, Instant};

/// The greatest time of a budget, seconds: a day.
const MAX_SECONDS: f64 = 86_400.0;

/// A budget.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Budget {
    /// So much time.
    Time(Duration),
    /// So many evaluations.
    Evaluations(usize),
}

/// A budget that is being spent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    budget: Budget,
    start: Instant,
}

impl Budget {
    /// Begins to spend the budget.
    pub(crate) fn start(self) -> Clock {
        Clock { budget: self, start: Instant::now() }
    }

    /// A share of a time; a number of evaluations is the same.
    pub(crate) fn share(self, share: f64) -> Self {
        match self {
            Self::Time(time) => Self::Time(time.mul_f64(share)),
            Self::Evaluations(_) => self,
        }
    }
}

impl Clock {
    /// The share that is left after so many evaluations, negative if more is spent.
    pub(crate) fn left(&self, evaluations: usize) -> f64 {
        match self.budget {
            Budget::Time(time) => 1.0 - self.start.elapsed().as_secs_f64() / time.as_secs_f64(),
            Budget::Evaluations(count) => 1.0 - evaluations as f64 / count as f64,
        }
    }

    /// Whether less than this share of a time is spent; always, of evaluations.
    pub(crate) fn is_within(&self, share: f64) -> bool {
        match self.budget {
            Budget::Time(time) => self.start.elapsed() < time.mul_f64(share),
            Budget::Evaluations(_) => true,
        }
    }
}

/// `90s`, `2m`, or a number of evaluations.
pub(crate) fn parse(text: &str) -> Result<Budget, String> {
    const WRONG: &str = "expected a time such as 90s or 2m, at most a day, or a number of evaluations";
    if let Ok(count) = text.parse::<usize>() {
        return if count > 0 { Ok(Budget::Evaluations(count)) } else { Err(WRONG.to_owned()) };
    }
    let minutes = text.strip_suffix('m').map(|number| (number, 60.0));
    let (number, unit) = minutes.or_else(|| Some((text.strip_suffix('s')?, 1.0))).ok_or(WRONG)?;
    let seconds = number.parse::<f64>().map_err(|_| WRONG)? * unit;
    match seconds > 0.0 && seconds <= MAX_SECONDS {
        true => Ok(Budget::Time(Duration::from_secs_f64(seconds))),
        false => Err(WRONG.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_is_a_time_or_a_number_of_evaluations() {
        assert_eq!(parse("2m"), Ok(Budget::Time(Duration::from_secs(120))));
        assert_eq!(parse("1.5s"), Ok(Budget::Time(Duration::from_millis(1500))));
        assert_eq!(parse("200"), Ok(Budget::Evaluations(200)));
        for wrong in ["", "0", "0s", "-1s", "2h", "m", "1e99m", "NaNs"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
        assert_eq!([10, 20].map(|count| Budget::Evaluations(20).start().left(count)), [0.5, 0.0]);
    }
}
