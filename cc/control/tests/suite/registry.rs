//! Every entry: its names, its parameters, and how it cuts and undoes.

use crate::world::{Act, World};
use control::registry::{REGISTRY, find};
use control::{AlgorithmEntry, Decision, Deviation, Ecn, ParamKind, ParamValue, Params};
use std::collections::{BTreeMap, BTreeSet};
use units::INFINITE_SSTHRESH;

#[test]
fn names_and_aliases_are_unique_and_found() {
    let mut seen = BTreeSet::new();
    for entry in REGISTRY {
        for name in [entry.name].iter().chain(entry.aliases) {
            assert!(seen.insert(*name), "`{name}` stands for two algorithms");
            assert_eq!(find(name).map(|found| found.name), Some(entry.name));
        }
    }
    assert!(find("no such algorithm").is_none());
}

#[test]
fn every_entry_says_what_it_is_and_where_it_comes_from() {
    for entry in REGISTRY {
        assert!(!entry.title.is_empty() && !entry.source.is_empty(), "{}", entry.name);
        assert!(entry.parameters.iter().all(|parameter| !parameter.description.is_empty()), "{}", entry.name);
    }
}

#[test]
fn algorithms_that_count_marks_need_an_echo_per_packet() {
    let asks = |entry: &AlgorithmEntry, given| entry.ecn(&given).expect("allowed") == Ecn::PerPacket;
    let by_default: Vec<&str> =
        REGISTRY.iter().filter(|entry| asks(entry, BTreeMap::new())).map(|entry| entry.name).collect();
    assert_eq!(by_default, ["dctcp"]);
    let bbr3 = find("bbr3").expect("registered");
    assert!(asks(bbr3, BTreeMap::from([("ecn".to_owned(), ParamValue::Choice("on".to_owned()))])));
}

#[test]
fn every_default_is_allowed_and_what_lies_outside_is_not() {
    for entry in REGISTRY {
        for parameter in entry.parameters {
            let given = |value| BTreeMap::from([(parameter.name.to_owned(), value)]);
            let text = format!("{} of {}", parameter.name, entry.name);
            assert!(Params::new(entry.parameters, &given(parameter.default_value())).is_ok(), "{text}");
            let wrong = match parameter.kind {
                ParamKind::Number { max, .. } => ParamValue::Number(max + 1.0),
                ParamKind::Choice(_) => ParamValue::Choice("no such word".to_owned()),
            };
            let error = entry.controller(&given(wrong)).expect_err(&text);
            assert!(error.to_string().contains(&parameter.range()), "{error}");
        }
    }
}

#[test]
fn an_unknown_parameter_is_answered_with_what_there_is() {
    for entry in REGISTRY {
        let given = BTreeMap::from([("no_such_key".to_owned(), ParamValue::Number(1.0))]);
        let error = entry.controller(&given).expect_err(entry.name).to_string();
        assert!(error.contains("no_such_key"), "{error}");
        assert!(entry.parameters.iter().all(|parameter| error.contains(parameter.name)), "{error}");
    }
}

/// A flow whose window has come to at least 60 packets, with a full window in flight; beside it a smaller one.
fn flow(entry: &'static AlgorithmEntry) -> World {
    let mut world = World::new(entry);
    for round in 0..40 {
        if world.decision(0).cwnd < 60 {
            (0..2).for_each(|path| world.act(path, Act::Send(1000)));
            world.act(0, Act::Wait(50));
            world.act(0, ack(1000, 0));
            if round % 2 == 1 {
                world.act(1, ack(1000, 0));
            }
        }
    }
    world.act(0, Act::Send(1000));
    assert!(world.decision(0).cwnd >= 60, "{}", entry.name);
    world
}

fn ack(acked: u32, lost: u32) -> Act {
    Act::Ack { acked, lost, rtt_us: 50_000, window_limited: true, app_limited: false }
}

#[test]
fn undo_restores_the_window_and_the_threshold() {
    let deviates = |entry: &AlgorithmEntry| {
        entry.deviates(Deviation::KeepsCwndOnUndo) || entry.deviates(Deviation::SetsCwndOnRecovered)
    };
    for entry in REGISTRY.iter().copied().filter(|entry| !deviates(entry)) {
        let mut world = flow(entry);
        let before = world.decision(0);
        world.act(0, ack(3, 1));
        let cut = world.decision(0);
        assert!(cut.ssthresh < before.cwnd, "{}: {cut:?}", entry.name);
        world.act(0, Act::Undo);
        let after = world.decision(0);
        assert_eq!(after.cwnd, before.cwnd, "{}", entry.name);
        assert_eq!(after.ssthresh, before.ssthresh.max(cut.ssthresh), "{}", entry.name);
    }
}

#[test]
fn a_mark_is_never_undone() {
    for entry in REGISTRY.iter().copied().filter(|entry| !entry.deviates(Deviation::SetsCwndOnRecovered)) {
        let mut world = flow(entry);
        world.act(0, Act::Mark);
        world.act(0, ack(3, 1));
        let cut = world.decision(0);
        world.act(0, Act::Undo);
        assert_eq!(world.decision(0).ssthresh, cut.ssthresh, "{}", entry.name);
    }
}

#[test]
fn one_window_is_reduced_once_by_marks_drops_and_losses() {
    for entry in REGISTRY.iter().copied().filter(|entry| !entry.deviates(Deviation::ReducesOnLossAfterMark)) {
        let mut world = flow(entry);
        world.act(0, Act::Mark);
        let cut = world.decision(0).ssthresh;
        for again in [Act::Mark, Act::LocalDrop, ack(3, 1), ack(3, 2), Act::Mark] {
            world.act(0, again);
            assert_eq!(world.decision(0).ssthresh, cut, "{} on {again:?}", entry.name);
        }
    }
}

#[test]
fn a_timeout_in_recovery_sends_one_packet_but_does_not_cut_again() {
    for entry in REGISTRY.iter().copied() {
        let mut world = flow(entry);
        world.act(0, ack(3, 1));
        let cut = world.decision(0).ssthresh;
        world.act(0, Act::Timeout);
        assert_eq!((world.decision(0).cwnd, world.decision(0).ssthresh), (1, cut), "{}", entry.name);
    }
}

#[test]
fn a_path_that_comes_back_has_learnt_nothing() {
    let life = |world: &mut World| -> Vec<Decision> {
        let start = [Act::Send(1000), Act::Wait(50), ack(5, 1), Act::Wait(5), ack(3, 0), Act::Timeout];
        let rest = [Act::Send(1000), Act::Wait(50), ack(1000, 0)];
        let mut act = |&act| {
            world.act(0, act);
            world.decision(0)
        };
        start.iter().chain(&rest).cycle().take(60).map(&mut act).collect()
    };
    for entry in REGISTRY.iter().copied() {
        let mut world = World::new(entry);
        let first = life(&mut world);
        world.bring_up(0);
        assert_eq!(life(&mut world), first, "{}", entry.name);
    }
}

#[test]
fn no_algorithm_has_a_threshold_before_the_first_congestion() {
    for entry in REGISTRY.iter().copied() {
        assert_eq!(World::new(entry).decision(0).ssthresh, INFINITE_SSTHRESH, "{}", entry.name);
    }
}
