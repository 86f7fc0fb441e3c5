//! The scheduler `policy`: a learned policy from a file.

use super::packet::{PacketRule, observe_packet};
use super::{Answers, SchedulerFile, greatest};
use crate::ModelPolicy;
use crate::file::Shared;
use control::{FILE, ParamError, ParamKind, Parameter};
use schedule::{Constructor, Fill, MinRtt, Needs, Pick, Scheduler, SchedulerEntry, SchedulerSetup, SchedulerView};

static FILES: Shared<SchedulerFile> = Shared::new();

/// Registers the scheduler `policy`.
pub(crate) fn register() {
    let entry = SchedulerEntry {
        name: "policy",
        aliases: &[],
        title: "a learned policy from an ONNX file, for each packet or interval; minrtt if it fails",
        source: "docs/reference/policies.md",
        code_version: Some(env!("CARGO_PKG_VERSION")),
        needs: Needs::Measurements,
        fill: Fill::Cwnd,
        parameters: &[Parameter { name: FILE, description: "the policy's ONNX file", kind: ParamKind::File }],
        constructor: Constructor::Fallible(scheduler),
    };
    schedule::register(entry).expect("the name `policy` is free, or this entry's");
}

fn scheduler(setup: &SchedulerSetup<'_>) -> Result<Box<dyn Scheduler>, ParamError> {
    let file = FILES.get(setup.params.file(), SchedulerFile::read);
    let file = file.map_err(|error| ParamError { key: FILE.to_owned(), message: format!("`{FILE}`: {error}") })?;
    Ok(file.scheduler())
}

/// A policy that chooses the path of each packet; `minrtt` once it has failed.
#[derive(Debug)]
pub(super) struct PacketScheduler {
    answers: Answers,
    rule: PacketRule,
    notes: Vec<String>,
}

impl PacketScheduler {
    pub(super) fn new(policy: ModelPolicy, notes: Vec<String>) -> Self {
        Self { answers: Answers::new(policy), rule: PacketRule::default(), notes }
    }
}

impl Scheduler for PacketScheduler {
    fn pick(&mut self, view: &SchedulerView<'_>) -> Option<Pick> {
        let Self { answers, rule, .. } = self;
        answers.check_paths(view.paths.len());
        if answers.failure.is_some() {
            return MinRtt.pick(view);
        }
        let paths = answers.numbers.len();
        rule.pick(view, |view| greatest(answers.to(&observe_packet(view, paths))?))
    }

    fn failure(&self) -> Option<&str> {
        self.answers.failure.as_deref()
    }

    fn notes(&self) -> Vec<String> {
        self.notes.clone()
    }
}
