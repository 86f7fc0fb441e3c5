//! The congestion control `policy`: a learned policy from a file.

use crate::{PerPath, PolicyController, PolicyError, PolicyFile};
use control::{
    AlgorithmEntry, Constructor, Context, Controller, Decision, FILE, ParamError, ParamKind, Parameter, Params,
    PathEvent, Properties,
};
use std::collections::BTreeMap;
use std::sync::Once;
use units::PathId;

/// Registers the congestion control and the scheduler `policy`, at the first call. The simulator calls it before a run; a program that lists algorithms
/// or uses them otherwise does so at its start.
pub fn register() {
    static REGISTERED: Once = Once::new();
    REGISTERED.call_once(|| {
        register_entry();
        crate::scheduler::register();
    });
}

fn register_entry() {
    let entry = AlgorithmEntry {
        name: "policy",
        aliases: &[],
        title: "a learned policy from an ONNX file, for each path or for several together; CUBIC if it fails",
        source: "docs/reference/policies.md",
        parameters: &[Parameter { name: FILE, description: "the policy's ONNX file", kind: ParamKind::File }],
        properties: Properties {
            check: |params| read(params).map(drop),
            notes: |params| read(params).map_or_else(|_| Vec::new(), |file| file.notes()),
            code_version: Some(env!("CARGO_PKG_VERSION")),
            single_path: None,
            ..Properties::DEFAULT
        },
        constructor: Constructor::Coupled(controller),
    };
    control::registry::register(entry).expect("the name `policy` is free, or this entry's");
}

fn read(params: &Params) -> Result<std::sync::Arc<PolicyFile>, ParamError> {
    PolicyFile::shared(params.file())
        .map_err(|error| ParamError { key: FILE.to_owned(), message: format!("`{FILE}`: {error}") })
}

fn controller(params: &Params) -> Box<dyn Controller> {
    let file = read(params).expect("the file has been checked");
    let paths = file.settings().paths;
    let construct = move || PolicyController::new(file.settings().clone(), file.policy());
    match paths {
        1 => Box::new(PerPath::new(construct)),
        _ => Box::new(Group { policy: construct(), paths, others: None }),
    }
}

/// A policy for a fixed number of paths. If there are more paths, all of them run CUBIC.
#[derive(Debug)]
struct Group {
    policy: PolicyController,
    paths: usize,
    /// CUBIC, for the case of more paths.
    others: Option<Box<dyn Controller>>,
}

impl Controller for Group {
    fn on_event(&mut self, path: PathId, event: &PathEvent, cx: &mut Context<'_>) {
        if path.index() < self.paths {
            return self.policy.on_event(path, event, cx);
        }
        if self.others.is_none() {
            let message = format!("the policy decides for {} paths, but there are more", self.paths);
            self.policy.fail(PolicyError(message), cx);
        }
        let cubic = || {
            let cubic = control::single::cubic::ENTRY.controller(&BTreeMap::new());
            cubic.expect("the defaults are in range")
        };
        self.others.get_or_insert_with(cubic).on_event(path, event, cx);
    }

    fn decision(&self, path: PathId) -> Decision {
        match &self.others {
            Some(others) if path.index() >= self.paths => others.decision(path),
            _ => self.policy.decision(path),
        }
    }

    fn failure(&self) -> Option<&str> {
        self.policy.failure().map(|error| error.0.as_str())
    }
}
