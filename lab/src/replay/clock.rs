//! The kernel's clock, and the ticks of its timers.

use std::error::Error;
use std::fs;
use std::time::{Duration, Instant};

/// Ticks by which the kernel's timer wheel rounds timeouts of up to 4032 ticks: a script's zero is at a multiple.
const WHEEL: u64 = 64;
/// Maximum number of readings: a kernel that has just been booted has no such timer yet.
const ATTEMPTS: usize = 1000;

/// The clock (`CLOCK_MONOTONIC`), and the phase of the ticks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock {
    start: Instant,
    start_ns: u64,
    /// An instant at which the number of ticks was a multiple of [`WHEEL`].
    aligned_ns: u64,
    tick_ns: u64,
}

impl Clock {
    /// Reads the phase of the ticks, whose period is `tick_us`.
    pub(super) fn read(tick_us: u64) -> Result<Self, Box<dyn Error + Send + Sync>> {
        let tick_ns = tick_us * 1000;
        for _ in 0..ATTEMPTS {
            let text = fs::read_to_string("/proc/timer_list").map_err(|error| format!("/proc/timer_list: {error}"))?;
            let start = Instant::now();
            let number = |name: &str| number_after(&text, name).ok_or(format!("/proc/timer_list has no {name}"));
            let (start_ns, jiffies) = (number("now at")?, number("jiffies:")?);
            let phase = next_tick_ns(&text).map(|next_tick| (start_ns + tick_ns - next_tick % tick_ns) % tick_ns);
            // In the middle of a tick, so that the time and the count of ticks agree.
            if let Some(phase) = phase.filter(|phase| (tick_ns / 4..tick_ns * 3 / 4).contains(phase)) {
                let aligned_ns = (start_ns - phase) + (WHEEL - jiffies % WHEEL + outer_delay()?) * tick_ns;
                return Ok(Self { start, start_ns, aligned_ns, tick_ns });
            }
            std::thread::sleep(Duration::from_nanos(tick_ns / 3));
        }
        Err("/proc/timer_list has no timer of the tick".into())
    }

    /// Now, nanoseconds.
    pub(super) fn now_ns(&self) -> u64 {
        self.start_ns + self.start.elapsed().as_nanos() as u64
    }

    /// The time until an instant.
    pub(super) fn until(&self, at_ns: u64) -> Duration {
        Duration::from_nanos(at_ns.saturating_sub(self.now_ns()))
    }

    /// The first instant, from this one on, that can be a script's zero.
    pub(super) fn aligned_from(&self, at_ns: u64) -> u64 {
        self.aligned_ns + at_ns.saturating_sub(self.aligned_ns).next_multiple_of(WHEEL * self.tick_ns)
    }
}

/// The tick of this kernel's timers, microseconds, from its count of ticks over a fifth of a second.
pub(super) fn tick_us() -> Result<u64, Box<dyn Error + Send + Sync>> {
    let read = || -> Result<[u64; 2], Box<dyn Error + Send + Sync>> {
        let text = fs::read_to_string("/proc/timer_list").map_err(|error| format!("/proc/timer_list: {error}"))?;
        let number = |name: &str| number_after(&text, name).ok_or(format!("/proc/timer_list has no {name}"));
        Ok([number("now at")?, number("jiffies:")?])
    };
    let [start_ns, start] = read()?;
    std::thread::sleep(Duration::from_millis(200));
    let [end_ns, end] = read()?;
    let tick_ns = (end_ns - start_ns) / (end - start).max(1);
    let known_us = [1000_u64, 3333, 4000, 10_000];
    known_us.into_iter().min_by_key(|known| known.abs_diff(tick_ns / 1000)).ok_or_else(|| "no tick".into())
}

/// Ticks by which timers of the wheel's outer levels, of 63 ticks or more, are late: none, except in User-Mode Linux, where
/// one was measured.
fn outer_delay() -> Result<u64, std::io::Error> {
    Ok(u64::from(fs::read_to_string("/proc/cpuinfo")?.contains("User Mode Linux")))
}

/// The expiry of the first processor's tick timer (`tick_sched_timer`, or `tick_nohz_handler` since 6.9).
fn next_tick_ns(text: &str) -> Option<u64> {
    let is_tick = |line: &&str| line.contains("tick_sched_timer") || line.contains("tick_nohz_handler");
    let mut lines = text.lines().skip_while(|line| !is_tick(line));
    let expires = lines.nth(1)?.trim_start().strip_prefix("# expires at ")?;
    expires.split('-').next()?.parse().ok()
}

/// The number after a name and a colon or spaces, at its first occurrence.
fn number_after(text: &str, name: &str) -> Option<u64> {
    let rest = text.lines().find_map(|line| line.trim_start().strip_prefix(name))?;
    rest.trim_start_matches([' ', ':']).split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_found_by_their_names() {
        let text = "Timer List\nnow at 26620463139933 nsecs\n #0: <0>, tick_nohz_handler, S:01\n # expires at \
                    26620464000000-26620464000000 nsecs [in 860067 to 860067 nsecs]\njiffies: 4301547354\n";
        let numbers = ["now at", "jiffies:", "none"].map(|name| number_after(text, name));
        assert_eq!(numbers, [Some(26_620_463_139_933), Some(4_301_547_354), None]);
        assert_eq!(next_tick_ns(text), Some(26_620_464_000_000));
    }

    #[test]
    fn a_zero_is_at_a_multiple_of_the_wheels_ticks() {
        let clock = Clock { start: Instant::now(), start_ns: 0, aligned_ns: 1000, tick_ns: 10 };
        assert_eq!([0, 1000, 1001, 1640, 1641].map(|at| clock.aligned_from(at)), [1000, 1000, 1640, 1640, 2280]);
    }
}
