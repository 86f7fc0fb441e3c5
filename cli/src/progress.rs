//! How far a sweep is: done and total, rate, time left. Shows itself only on a terminal.

use std::io::{IsTerminal, Write};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Columns of the bar.
const WIDTH: usize = 32;
/// The least time between two drawings.
const INTERVAL: Duration = Duration::from_millis(100);

/// A line on standard error that vanishes with this value.
pub(crate) struct Progress(Option<Mutex<State>>);

struct State {
    total: usize,
    done: usize,
    begin: Instant,
    drawn: Option<Instant>,
}

impl Progress {
    /// For `total` runs. Nothing is ever shown if it is to be `quiet` or standard error is no terminal.
    pub(crate) fn new(total: usize, quiet: bool) -> Self {
        let shown = !quiet && total > 0 && std::io::stderr().is_terminal();
        let mut state = State { total, done: 0, begin: Instant::now(), drawn: None };
        if shown {
            state.draw(state.begin);
        }
        Self(shown.then(|| Mutex::new(state)))
    }

    /// Counts one more run as done.
    pub(crate) fn advance(&self) {
        let Some(state) = &self.0 else { return };
        let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
        state.done += 1;
        let now = Instant::now();
        if state.drawn.is_none_or(|drawn| now - drawn >= INTERVAL) {
            state.draw(now);
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.0.is_some() {
            put("\r\x1b[K");
        }
    }
}

impl State {
    fn draw(&mut self, now: Instant) {
        self.drawn = Some(now);
        put(&format!("\r{}\x1b[K", line(self.done, self.total, (now - self.begin).as_secs_f64())));
    }
}

/// The line after `elapsed` seconds.
fn line(done: usize, total: usize, elapsed: f64) -> String {
    let filled = WIDTH * done / total;
    let bar = "█".repeat(filled) + &"░".repeat(WIDTH - filled);
    if done == 0 {
        return format!("{bar} 0/{total} runs");
    }
    let rate = done as f64 / elapsed.max(1e-3);
    format!("{bar} {done}/{total} runs  {rate:.1} a second  {:.0} s left", (total - done) as f64 / rate)
}

/// There is nowhere to tell that this failed.
fn put(text: &str) {
    let mut stderr = std::io::stderr().lock();
    let _ = stderr.write_all(text.as_bytes()).and_then(|()| stderr.flush());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_tells_rate_and_time_left() {
        let half = "█".repeat(16) + &"░".repeat(16);
        assert_eq!(line(10, 20, 4.0), format!("{half} 10/20 runs  2.5 a second  4 s left"));
        assert_eq!(line(0, 2, 0.0), format!("{} 0/2 runs", "░".repeat(32)));
    }
}
