//! The cost of each part of the checks: CPU seconds of all its programs, and wall seconds.

use crate::shell;
use std::time::Instant;

/// The parts that have ended, in their order.
#[derive(Debug)]
pub(super) struct Timing {
    parts: Vec<Part>,
    start: Instant,
}

#[derive(Debug)]
struct Part {
    name: String,
    cpu_s: f64,
    wall_s: f64,
}

impl Timing {
    /// Begins.
    pub(super) fn start() -> Self {
        Self { parts: Vec::new(), start: Instant::now() }
    }

    /// Runs a part, and notes the cost of the programs that this thread runs for it.
    pub(super) fn part<T>(&mut self, name: &str, part: impl FnOnce() -> T) -> T {
        let (cpu_s, start) = (shell::cpu_s(), Instant::now());
        let result = part();
        let (cpu_s, wall_s) = (shell::cpu_s() - cpu_s, start.elapsed().as_secs_f64());
        self.parts.push(Part { name: name.to_owned(), cpu_s, wall_s });
        result
    }

    /// Adds the parts of another thread.
    pub(super) fn add(&mut self, other: Self) {
        self.parts.extend(other.parts);
    }

    /// One line per part, and one for all parts so far, some of which may have run at the same time.
    pub(super) fn table(&self) -> String {
        self.table_at(self.start.elapsed().as_secs_f64())
    }

    fn table_at(&self, wall_s: f64) -> String {
        let width = self.parts.iter().map(|part| part.name.len()).max().unwrap_or(0).max("all parts".len());
        let line = |name: &str, cpu_s: f64, wall_s: f64| format!("  {name:width$}  {cpu_s:8.1}  {wall_s:8.1}\n");
        let mut table = format!("\n  {:width$}  {:>8}  {:>8}\n", "part", "CPU s", "wall s");
        self.parts.iter().for_each(|part| table += &line(&part.name, part.cpu_s, part.wall_s));
        let cpu_s = self.parts.iter().map(|part| part.cpu_s).sum();
        table + &line("all parts", cpu_s, wall_s)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_has_the_cpu_time_of_its_programs() {
        let mut timing = Timing::start();
        timing.part("idle", || ());
        timing.part("busy", || shell::output("seq -f %g 1000000")).unwrap();
        let [idle, busy] = [0, 1].map(|part: usize| timing.parts[part].cpu_s);
        assert!(idle == 0.0 && busy > 0.0, "{idle} {busy}");
    }

    #[test]
    fn the_table_ends_with_the_cpu_time_of_all_and_the_time_that_passed() {
        let part = |name: &str, cpu_s, wall_s| Part { name: name.to_owned(), cpu_s, wall_s };
        let timing = |parts| Timing { parts, start: Instant::now() };
        let mut all = timing(vec![part("lints", 200.0, 110.5)]);
        all.add(timing(vec![part("tests", 1000.25, 600.0)]));
        let expected = "\n  part          CPU s    wall s\n  \
            lints         200.0     110.5\n  \
            tests        1000.2     600.0\n  \
            all parts    1200.2     650.5\n";
        assert_eq!(all.table_at(650.5), expected);
    }
}
