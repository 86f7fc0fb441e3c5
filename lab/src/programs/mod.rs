//! Congestion controls that the machine's own kernel lacks, as Ropewalk's eBPF programs (crate `kernel`).
//!
//! A run loads what its flows need. The names are the kernel's and hold for the whole machine: a program stays loaded as
//! long as a run of any lab uses it, and the last run unloads it. A program that was already loaded stays loaded.

#[cfg(feature = "kernel")]
mod hold;
#[cfg(not(feature = "kernel"))]
mod none;

#[cfg(feature = "kernel")]
pub(crate) use hold::{Hold, find};
#[cfg(not(feature = "kernel"))]
pub(crate) use none::{Hold, find};

use crate::support::Capabilities;
use params::{AlgorithmChoice, ParamValue};
use scenario::model::{Experiment, FlowKind};

/// The programs that a kernel can load.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Programs {
    /// Names: the algorithm's in Ropewalk's registry, the program's in the kernel.
    pub(crate) names: Vec<(&'static str, &'static str)>,
    /// The reason why there are none, and how to fix it.
    pub(crate) unavailable_reason: Option<String>,
}

impl Programs {
    /// The kernel's name of the program that runs an algorithm with its parameters. A program takes no parameters, but a
    /// coupling over BBR has a separate program: `lia-bbr` for `{ name = "lia", path = "bbr" }`.
    fn kernel_name(&self, algorithm: &AlgorithmChoice) -> Option<&'static str> {
        let AlgorithmChoice { name, parameters } = algorithm;
        let parameters: Vec<(&str, &ParamValue)> =
            parameters.iter().map(|(key, value)| (key.as_str(), value)).collect();
        let name = match &parameters[..] {
            [] => name.clone(),
            [("path", ParamValue::Choice(path))] if path == "reno" => name.clone(),
            [("path", ParamValue::Choice(path))] => format!("{name}-{path}"),
            _ => return None,
        };
        self.names.iter().find(|(algorithm, _)| *algorithm == name).map(|(_, kernel_name)| *kernel_name)
    }
}

impl Capabilities {
    /// The eBPF program that runs an algorithm. The kernel's own algorithm has precedence.
    fn program(&self, algorithm: &AlgorithmChoice) -> Option<&'static str> {
        let is_own = self.congestion_controls.contains(&algorithm.name);
        self.programs.kernel_name(algorithm).filter(|_| !is_own)
    }

    /// The kernel's name of an algorithm: its own, or that of an eBPF program.
    pub(crate) fn kernel_name<'a>(&self, algorithm: &'a AlgorithmChoice) -> Option<&'a str> {
        let own = self.congestion_controls.contains(&algorithm.name) && algorithm.parameters.is_empty();
        if own { Some(&algorithm.name) } else { self.program(algorithm) }
    }

    /// Whether an algorithm may be the default of a namespace. A loaded program may.
    pub(crate) fn may_be_default(&self, algorithm: &AlgorithmChoice) -> bool {
        self.default_congestion_controls.contains(&algorithm.name) || self.program(algorithm).is_some()
    }

    /// The reason why a flow cannot have an algorithm.
    pub(crate) fn why_unknown(&self, algorithm: &AlgorithmChoice) -> String {
        let without_parameters = AlgorithmChoice::from(algorithm.name.as_str());
        if self.kernel_name(&without_parameters).is_some() {
            return "parameters of a congestion control: the kernel has its own".into();
        }
        let programs: Vec<&str> = self.programs.names.iter().map(|(name, _)| *name).collect();
        let others = match &self.programs.unavailable_reason {
            Some(reason) => format!("; it gets none of Ropewalk's eBPF programs: {reason}"),
            None if programs.is_empty() => String::new(),
            None => format!(", and by Ropewalk's eBPF programs {}", programs.join(", ")),
        };
        let own = self.congestion_controls.join(", ");
        format!("congestion control `{}`: this kernel has {own}{others}", algorithm.name)
    }

    /// The programs that an experiment uses, by the kernel's names.
    pub(crate) fn programs_of(&self, experiment: &Experiment) -> Vec<&'static str> {
        let mut names: Vec<&'static str> = algorithms(experiment).filter_map(|choice| self.program(choice)).collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    /// Notes on the programs that an experiment uses.
    pub(crate) fn program_notes(&self, experiment: &Experiment) -> Vec<String> {
        let note = |choice: &AlgorithmChoice| {
            let program = self.program(choice)?;
            let parameters: Vec<String> =
                choice.parameters.iter().map(|(key, value)| format!(" {key}={value}")).collect();
            Some(format!("{}{}: Ropewalk's eBPF program {program}", choice.name, parameters.concat()))
        };
        algorithms(experiment).filter_map(note).collect()
    }

    /// The experiment with the kernel's names of the algorithms.
    pub(crate) fn with_kernel_names(&self, experiment: &Experiment) -> Experiment {
        let mut experiment = experiment.clone();
        let rename = |choice: &mut AlgorithmChoice| {
            if let Some(name) = self.program(choice) {
                *choice = AlgorithmChoice::from(name);
            }
        };
        for flow in &mut experiment.flows {
            if let FlowKind::Tcp { congestion, .. } = &mut flow.kind {
                rename(congestion);
            }
        }
        let ropewalk = experiment.tunnel.as_mut().and_then(|tunnel| tunnel.ropewalk.as_mut());
        if let Some(relay) = ropewalk.and_then(|ropewalk| ropewalk.relay.as_mut()) {
            rename(&mut relay.congestion);
        }
        experiment
    }
}

/// The congestion controls of an experiment's TCP connections.
fn algorithms(experiment: &Experiment) -> impl Iterator<Item = &AlgorithmChoice> {
    let flows = experiment.flows.iter().filter_map(|flow| match &flow.kind {
        FlowKind::Tcp { congestion, .. } => Some(congestion),
        FlowKind::ConstantRate { .. } | FlowKind::Hosted(_) => None,
    });
    let relay = experiment.tunnel.iter().filter_map(|tunnel| tunnel.relay()).map(|relay| &relay.congestion);
    flows.chain(relay)
}

#[cfg(test)]
mod tests;
