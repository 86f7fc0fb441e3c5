//! The CPU time of a run: for a gigabyte of payload that all flows together delivered, or as a share of the run's time.

use record::{Cpu, Run};

const GIGABYTE: f64 = 1e9;

/// The machine's busy time, seconds for 10^9 bytes; none if none was measured or nothing delivered.
pub(crate) fn machine_s_per_gb(run: &Run) -> Option<f64> {
    per_gigabyte(run, |cpu| cpu.name == Cpu::MACHINE)
}

/// The busy time of a tunnel's two daemons together, seconds for 10^9 bytes.
pub(crate) fn tunnel_s_per_gb(run: &Run) -> Option<f64> {
    per_gigabyte(run, |cpu| cpu.name.starts_with(Cpu::TUNNEL))
}

/// The machine's busy time, percent of the run's duration: 100 is one CPU's whole time.
pub(crate) fn machine_percent(run: &Run) -> Option<f64> {
    percent(run, |cpu| cpu.name == Cpu::MACHINE)
}

/// The busy time of a tunnel's two daemons together, percent of the run's duration.
pub(crate) fn tunnel_percent(run: &Run) -> Option<f64> {
    percent(run, |cpu| cpu.name.starts_with(Cpu::TUNNEL))
}

fn per_gigabyte(run: &Run, is_counted: fn(&Cpu) -> bool) -> Option<f64> {
    let bytes = run.flows.iter().map(|flow| flow.delivered_bytes).sum::<u64>() as f64;
    busy_s(run, is_counted).filter(|_| bytes > 0.0).map(|busy_s| busy_s * GIGABYTE / bytes)
}

fn percent(run: &Run, is_counted: fn(&Cpu) -> bool) -> Option<f64> {
    busy_s(run, is_counted).filter(|_| run.duration_s > 0.0).map(|busy_s| 100.0 * busy_s / run.duration_s)
}

/// The busy time of the entries that `is_counted` selects, seconds; none if there are none.
fn busy_s(run: &Run, is_counted: fn(&Cpu) -> bool) -> Option<f64> {
    let busy: Vec<f64> = run.cpu.iter().filter(|cpu| is_counted(cpu)).map(Cpu::busy_s).collect();
    (!busy.is_empty()).then(|| busy.iter().sum())
}

#[cfg(test)]
mod tests {
    use super::*;
    use record::Flow;

    #[test]
    fn time_is_for_a_gigabyte_of_all_flows_and_daemons_count_together() {
        let cpu =
            |name: &str, user_s, system_s, interrupt_s| Cpu { name: name.to_owned(), user_s, system_s, interrupt_s };
        let flow = Flow { delivered_bytes: 250_000_000, ..Flow::default() };
        let cpu = vec![
            cpu("machine", 1.0, 2.0, Some(0.5)),
            cpu("traffic", 0.5, 0.5, None),
            cpu("tunnel near", 0.25, 0.5, None),
            cpu("tunnel far", 0.25, 0.0, None),
        ];
        let run = Run { cpu, duration_s: 10.0, flows: vec![flow.clone(), flow], ..Run::default() };
        assert_eq!(
            (machine_s_per_gb(&run), tunnel_s_per_gb(&run)),
            (Some(7.0), Some(2.0)),
            "3.5 s and 1 s for half a gigabyte"
        );
        assert_eq!((machine_percent(&run), tunnel_percent(&run)), (Some(35.0), Some(10.0)), "of 10 s");
        let idle = Run { flows: Vec::new(), ..run.clone() };
        let simulated = Run { cpu: Vec::new(), ..run };
        assert_eq!(
            (machine_s_per_gb(&idle), machine_s_per_gb(&simulated), machine_percent(&simulated)),
            (None, None, None)
        );
    }
}
