//! With a sibling that is not in use each coupled program decides as alone: the same numbers, with the sibling's past in the
//! kernel's memory and without it.

use crate::harness::Native;
use crate::trace::{Step, record};
use crate::{ALGORITHMS, Algorithm};
use conformance::controller::Action;
use control::{AlgorithmEntry, registry};

/// Rounds of path `path`, acknowledged by three acknowledgements after `wait_ms`.
fn rounds(path: usize, count: usize, wait_ms: u64, rtt_ms: u64) -> Vec<(usize, Action)> {
    let acks = [2, 2, 1000].map(|acked| Action::Ack { acked, lost: 0, rtt_us: 1000 * rtt_ms });
    let round = [Action::Send(1000), Action::Wait(wait_ms)].into_iter().chain(acks);
    round.map(|action| (path, action)).cycle().take(5 * count).collect()
}

/// What the sibling does, and then the own path.
fn actions(past: &[Action]) -> Vec<(usize, Action)> {
    let loss = |path| [(path, Action::Send(1000)), (path, Action::Ack { acked: 3, lost: 1, rtt_us: 5_000 })].to_vec();
    let used = [rounds(1, 5, 2, 2), loss(1), rounds(1, 30, 2, 4)].concat();
    let past: Vec<_> = past.iter().map(|&action| (1, action)).collect();
    let own = [rounds(0, 4, 50, 50), loss(0), rounds(0, 10, 50, 50), rounds(0, 20, 50, 53)].concat();
    [if past.is_empty() { Vec::new() } else { used }, past, own].concat()
}

/// Compares the answers for the own path with those without the sibling's lines, which `backup` then replaces.
fn check(algorithm: Algorithm, native: &Native, past: &[Action], backup: &str) {
    let steps = record(algorithm, &actions(past)).expect("the actions break no rule");
    let is_own = |step: &&Step| step.path == 0 || step.line.starts_with("up ");
    let own: Vec<&str> = steps.iter().filter(is_own).map(|step| &*step.line).collect();
    let mut beside: Vec<&str> = steps.iter().map(|step| &*step.line).collect();
    let first = beside.iter().rposition(|line| line.starts_with("up ")).expect("all come up") + 1;
    beside.insert(first, backup);
    let alone = native.run(&own).expect("runs");
    let beside_answers = native.run(&beside).expect("runs");
    let of_own = |lines: &[&str], answers: Vec<_>| {
        let pairs = lines.iter().map(|line| (*line).to_owned()).zip(answers);
        pairs.filter(|(line, _)| line.split(' ').nth(1) == Some("0")).collect::<Vec<_>>()
    };
    let (alone, beside) = (of_own(&own, alone), of_own(&beside, beside_answers));
    assert_eq!(alone.len(), beside.len());
    for (alone, beside) in alone.iter().zip(&beside) {
        assert_eq!(alone, beside, "{}, {past:?} {backup}", algorithm.program);
    }
}

#[test]
fn beside_a_sibling_that_is_not_in_use_each_coupled_program_decides_as_alone() {
    let is_coupled = |algorithm: &&Algorithm| registry::find(algorithm.name).is_some_and(AlgorithmEntry::is_coupled);
    for &algorithm in ALGORITHMS.iter().filter(is_coupled) {
        let Some(native) = Native::of(algorithm.program) else { return };
        let check = |past: &[Action], backup| check(algorithm, &native, past, backup);
        check(&[], "set 1 srtt_eighths 16000 snd_cwnd 10");
        check(&[Action::Wait(5_000)], "set 1");
        check(&[Action::Send(1000), Action::Wait(5_000)], "set 1");
        check(&[Action::Send(1000), Action::Timeout, Action::Send(1)], "set 1");
    }
}
