//! CPU time of the machine and of single processes.

use super::Outcome;
use crate::protocol::Cpu;
use std::fs;
use units::Span;

/// The unit of `/proc/stat`: 1 / `USER_HZ`.
const USER_HZ_PERIOD: Span = Span::from_millis(10);

/// Measures CPU time from its creation on.
pub(super) struct CpuMeter {
    processes: Vec<(String, u32)>,
    start_times: Cpu,
}

impl CpuMeter {
    /// Measures these processes, given by name and pid file, and the agent itself as `traffic`.
    pub(super) fn begin(processes: &[(String, String)]) -> Outcome<Self> {
        let read_pid = |file: &String| Ok(fs::read_to_string(file)?.trim().parse()?);
        let mut pids = vec![("traffic".to_owned(), std::process::id())];
        for (name, file) in processes {
            let pid: Outcome<u32> = read_pid(file);
            pids.push((name.clone(), pid.map_err(|error| format!("{file}: {error}"))?));
        }
        let start_times = read_cpu_times(&pids)?;
        Ok(Self { processes: pids, start_times })
    }

    /// The CPU time used since the creation.
    pub(super) fn read(&self) -> Outcome<Cpu> {
        let mut cpu = read_cpu_times(&self.processes)?;
        cpu.machine.iter_mut().zip(self.start_times.machine).for_each(|(now, start)| *now = now.saturating_sub(start));
        let process_pairs = cpu.processes.iter_mut().zip(&self.start_times.processes);
        process_pairs
            .flat_map(|(now, start)| now.1.iter_mut().zip(start.1))
            .for_each(|(now, start)| *now = now.saturating_sub(start));
        Ok(cpu)
    }
}

fn read_cpu_times(processes: &[(String, u32)]) -> Outcome<Cpu> {
    let machine = machine(&fs::read_to_string("/proc/stat")?).ok_or("/proc/stat has no line `cpu`")?;
    let process_times = |(name, pid): &(String, u32)| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).map_err(|error| format!("{name}: {error}"))?;
        Ok((name.clone(), process(&stat).ok_or_else(|| format!("{name}: it has an unknown format"))?))
    };
    Ok(Cpu { machine, processes: processes.iter().map(process_times).collect::<Outcome<_>>()? })
}

/// `cpu user nice system idle iowait irq softirq ...`
fn machine(stat: &str) -> Option<[Span; 3]> {
    let line = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
    let columns: Vec<u64> = line.split_whitespace().map_while(|word| word.parse().ok()).collect();
    let sum = |indices: [usize; 2]| Some(USER_HZ_PERIOD * (columns.get(indices[0])? + columns.get(indices[1])?));
    Some([sum([0, 1])?, USER_HZ_PERIOD * *columns.get(2)?, sum([5, 6])?])
}

/// User and system time: fields 14 and 15 of `/proc/PID/stat`. The name, field 2, is in brackets and may hold anything.
fn process(stat: &str) -> Option<[Span; 2]> {
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_whitespace().skip(11).map(|word| word.parse().ok());
    Some([USER_HZ_PERIOD * fields.next()??, USER_HZ_PERIOD * fields.next()??])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_found_in_what_the_kernel_prints() {
        let stat = "cpu  100 5 30 900 7 2 11 0 0 0\ncpu0 1 1 1 1 1 1 1\n";
        assert_eq!(machine(stat), Some([1050, 300, 130].map(Span::from_millis)));
        let stat = "77 (a (b) c) S 1 77 77 0 -1 4194560 10 0 0 0 250 40 0 0 20 0 1 0 5 6";
        assert_eq!(process(stat), Some([2500, 400].map(Span::from_millis)));
    }
}
