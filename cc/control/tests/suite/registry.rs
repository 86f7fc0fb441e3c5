//! Every entry: names, parameters, reductions and undo.

use crate::sender::{Action, Sender};
use control::registry::{REGISTRY, find};
use control::{AlgorithmEntry, Decision, Deviation, Ecn, ParamKind, ParamValue, Params};
use std::collections::{BTreeMap, BTreeSet};
use units::INFINITE_SSTHRESH;

#[test]
fn names_and_aliases_are_unique() {
    let mut names = BTreeSet::new();
    for entry in REGISTRY {
        for name in [entry.name].iter().chain(entry.aliases) {
            assert!(names.insert(*name), "`{name}` is the name of two algorithms");
            assert_eq!(find(name).map(|entry| entry.name), Some(entry.name));
        }
    }
    assert!(find("no such algorithm").is_none());
}

#[test]
fn every_entry_has_title_source_and_descriptions() {
    for entry in REGISTRY {
        assert!(!entry.title.is_empty() && !entry.source.is_empty(), "{}", entry.name);
        assert!(entry.parameters.iter().all(|parameter| !parameter.description.is_empty()), "{}", entry.name);
    }
}

#[test]
fn algorithms_with_per_packet_ecn() {
    let needs_per_packet = |entry: &AlgorithmEntry, given| entry.ecn(&given).expect("allowed") == Ecn::PerPacket;
    let by_default: Vec<&str> =
        REGISTRY.iter().filter(|entry| needs_per_packet(entry, BTreeMap::new())).map(|entry| entry.name).collect();
    assert_eq!(by_default, ["dctcp"]);
    let bbr3 = find("bbr3").expect("registered");
    assert!(needs_per_packet(bbr3, BTreeMap::from([("ecn".to_owned(), ParamValue::Choice("on".to_owned()))])));
}

#[test]
fn defaults_are_allowed_and_values_out_of_range_are_not() {
    for entry in REGISTRY {
        for parameter in entry.parameters {
            let given = |value| BTreeMap::from([(parameter.name.to_owned(), value)]);
            let label = format!("{} of {}", parameter.name, entry.name);
            let default = parameter.default_value().expect(&label);
            assert!(Params::new(entry.parameters, &given(default)).is_ok(), "{label}");
            let value = match parameter.kind {
                ParamKind::Number { max, .. } => ParamValue::Number(max + 1.0),
                ParamKind::Choice(_) | ParamKind::File => ParamValue::Choice("no such word".to_owned()),
            };
            let error = entry.controller(&given(value)).expect_err(&label);
            assert!(error.to_string().contains(&parameter.range()), "{error}");
        }
    }
}

#[test]
fn the_error_of_an_unknown_parameter_lists_the_parameters() {
    for entry in REGISTRY {
        let given = BTreeMap::from([("no_such_key".to_owned(), ParamValue::Number(1.0))]);
        let error = entry.controller(&given).expect_err(entry.name).to_string();
        assert!(error.contains("no_such_key"), "{error}");
        assert!(entry.parameters.iter().all(|parameter| error.contains(parameter.name)), "{error}");
    }
}

/// A flow with a window of at least 60 packets in flight, and a sibling with a smaller one.
fn flow(entry: &'static AlgorithmEntry) -> Sender {
    let mut sender = Sender::new(entry);
    for round in 0..40 {
        if sender.decision(0).cwnd < 60 {
            (0..2).for_each(|path| sender.apply(path, Action::Send(1000)));
            sender.apply(0, Action::Wait(50));
            sender.apply(0, ack(1000, 0));
            if round % 2 == 1 {
                sender.apply(1, ack(1000, 0));
            }
        }
    }
    sender.apply(0, Action::Send(1000));
    assert!(sender.decision(0).cwnd >= 60, "{}", entry.name);
    sender
}

fn ack(acked: u32, lost: u32) -> Action {
    Action::Ack { acked, lost, rtt_us: 50_000 }
}

#[test]
fn undo_restores_the_window_and_the_threshold() {
    let deviates = |entry: &AlgorithmEntry| {
        entry.deviates(Deviation::KeepsCwndOnUndo) || entry.deviates(Deviation::SetsCwndOnRecovered)
    };
    for entry in REGISTRY.iter().copied().filter(|entry| !deviates(entry)) {
        let mut sender = flow(entry);
        let prior = sender.decision(0);
        sender.apply(0, ack(3, 1));
        let reduced = sender.decision(0);
        assert!(reduced.ssthresh < prior.cwnd, "{}: {reduced:?}", entry.name);
        sender.apply(0, Action::SpuriousLoss);
        let restored = sender.decision(0);
        assert_eq!(restored.cwnd, prior.cwnd, "{}", entry.name);
        assert_eq!(restored.ssthresh, prior.ssthresh.max(reduced.ssthresh), "{}", entry.name);
    }
}

#[test]
fn a_mark_is_never_undone() {
    for entry in REGISTRY.iter().copied().filter(|entry| !entry.deviates(Deviation::SetsCwndOnRecovered)) {
        let mut sender = flow(entry);
        sender.apply(0, Action::Mark);
        sender.apply(0, ack(3, 1));
        let reduced = sender.decision(0);
        sender.apply(0, Action::SpuriousLoss);
        assert_eq!(sender.decision(0).ssthresh, reduced.ssthresh, "{}", entry.name);
    }
}

#[test]
fn marks_drops_and_losses_reduce_a_window_once() {
    for entry in REGISTRY.iter().copied().filter(|entry| !entry.deviates(Deviation::ReducesOnLossAfterMark)) {
        let mut sender = flow(entry);
        sender.apply(0, Action::Mark);
        let reduced = sender.decision(0).ssthresh;
        for cause in [Action::Mark, Action::LocalDrop, ack(3, 1), ack(3, 2), Action::Mark] {
            sender.apply(0, cause);
            assert_eq!(sender.decision(0).ssthresh, reduced, "{} on {cause:?}", entry.name);
        }
    }
}

#[test]
fn a_timeout_in_recovery_sends_one_packet_and_keeps_the_threshold() {
    for entry in REGISTRY.iter().copied() {
        let mut sender = flow(entry);
        sender.apply(0, ack(3, 1));
        let reduced = sender.decision(0).ssthresh;
        sender.apply(0, Action::Timeout);
        assert_eq!((sender.decision(0).cwnd, sender.decision(0).ssthresh), (1, reduced), "{}", entry.name);
    }
}

#[test]
fn a_path_that_comes_up_again_is_reset() {
    let run = |sender: &mut Sender| -> Vec<Decision> {
        let start = [Action::Send(1000), Action::Wait(50), ack(5, 1), Action::Wait(5), ack(3, 0), Action::Timeout];
        let after_timeout = [Action::Send(1000), Action::Wait(50), ack(1000, 0)];
        let mut apply = |&action| {
            sender.apply(0, action);
            sender.decision(0)
        };
        start.iter().chain(&after_timeout).cycle().take(60).map(&mut apply).collect()
    };
    for entry in REGISTRY.iter().copied() {
        let mut sender = Sender::new(entry);
        let decisions = run(&mut sender);
        sender.bring_up(0);
        assert_eq!(run(&mut sender), decisions, "{}", entry.name);
    }
}

#[test]
fn no_algorithm_has_a_threshold_before_the_first_congestion() {
    for entry in REGISTRY.iter().copied() {
        assert_eq!(Sender::new(entry).decision(0).ssthresh, INFINITE_SSTHRESH, "{}", entry.name);
    }
}
