//! What each part of the checks costs: CPU seconds of all its programs, and wall seconds.

use nix::sys::resource::{UsageWho, getrusage};
use std::fmt::Write as _;
use std::time::Instant;

/// The parts that have ended, in their order.
#[derive(Debug, Default)]
pub(super) struct Timing(Vec<Part>);

#[derive(Debug)]
struct Part {
    name: String,
    cpu_s: f64,
    wall_s: f64,
}

impl Timing {
    /// Runs a part, and notes what it cost.
    pub(super) fn part<T>(&mut self, name: &str, part: impl FnOnce() -> T) -> T {
        let (cpu_s, start) = (children_cpu_s(), Instant::now());
        let result = part();
        let (cpu_s, wall_s) = (children_cpu_s() - cpu_s, start.elapsed().as_secs_f64());
        self.0.push(Part { name: name.to_owned(), cpu_s, wall_s });
        result
    }

    /// A line for each part, and one for all.
    pub(super) fn table(&self) -> String {
        let width = self.0.iter().map(|part| part.name.len()).max().unwrap_or(0).max("all parts".len());
        let line = |name: &str, cpu_s: f64, wall_s: f64| format!("  {name:width$}  {cpu_s:8.1}  {wall_s:8.1}\n");
        let mut table = format!("\n  {:width$}  {:>8}  {:>8}\n", "part", "CPU s", "wall s");
        self.0.iter().for_each(|part| table += &line(&part.name, part.cpu_s, part.wall_s));
        let sum = |seconds: fn(&Part) -> f64| self.0.iter().map(seconds).sum();
        let _ = write!(table, "{}", line("all parts", sum(|part| part.cpu_s), sum(|part| part.wall_s)));
        table
    }
}

/// CPU seconds, user and system, of the programs that we started and that have ended, with those that they started.
fn children_cpu_s() -> f64 {
    let Ok(usage) = getrusage(UsageWho::RUSAGE_CHILDREN) else { return 0.0 };
    let seconds =
        [usage.user_time(), usage.system_time()].map(|time| time.tv_sec() as f64 + time.tv_usec() as f64 / 1e6);
    seconds.iter().sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn a_part_has_the_cpu_time_of_its_programs() {
        let mut timing = Timing::default();
        timing.part("idle", || ());
        let busy = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done";
        timing.part("busy", || Command::new("sh").args(["-c", busy]).status().unwrap());
        let [idle, busy] = [0, 1].map(|part: usize| timing.0[part].cpu_s);
        assert!(busy > idle, "{busy} {idle}");
    }

    #[test]
    fn the_table_ends_with_the_sum() {
        let part = |name: &str, cpu_s, wall_s| Part { name: name.to_owned(), cpu_s, wall_s };
        let timing = Timing(vec![part("lints", 200.0, 110.5), part("tests", 1000.25, 600.0)]);
        let expected = "\n  part          CPU s    wall s\n  \
            lints         200.0     110.5\n  \
            tests        1000.2     600.0\n  \
            all parts    1200.2     710.5\n";
        assert_eq!(timing.table(), expected);
    }
}
