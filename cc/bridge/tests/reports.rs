//! What stacks report that our own machines do not: spurious losses without numbers, changes of the MTU, packets that nobody
//! acknowledges, paths that go.

use ropewalk_bridge::{Algorithm, Error, Group, Path, StackLimits};
use std::collections::BTreeMap;
use units::{Instant, Span};

const MTU: u16 = 1200;
const FULL: StackLimits = StackLimits { name: "a stack", paces: true, counts_marks: true };

fn group(name: &str) -> Group {
    Algorithm::new(name, &BTreeMap::new(), FULL).expect("built in").group(1)
}

fn ms(ms: u64) -> Instant {
    Instant::ZERO + Span::from_millis(ms)
}

/// The window in packets.
fn window(path: &Path) -> u64 {
    assert_eq!(path.window() % u64::from(MTU), 0);
    path.window() / u64::from(MTU)
}

fn send(path: &Path, at: u64, numbers: std::ops::Range<u64>) {
    numbers.for_each(|number| path.on_sent(ms(at), MTU.into(), Some(number)));
}

fn acknowledge(path: &Path, at: u64, sent: u64, numbers: std::ops::Range<u64>, packets_in_flight: u64) {
    numbers.for_each(|number| path.on_acked(ms(at), ms(sent), Some(number)));
    path.on_acks_end(packets_in_flight * u64::from(MTU));
}

/// Ten packets, of which the first is declared lost when the next three have arrived.
fn path_with_a_loss(group: &Group) -> Path {
    let path = group.path(Instant::ZERO, MTU);
    send(&path, 0, 0..10);
    acknowledge(&path, 20, 0, 1..4, 7);
    path.on_lost(ms(20), 0);
    path
}

#[test]
fn a_loss_and_its_acknowledgement_are_one_report() {
    let path = path_with_a_loss(&group("reno"));
    assert_eq!(path.ssthresh(), Some(5 * 1200), "half of ten packets, as no acknowledgement came before");
    send(&path, 21, 10..12);
    acknowledge(&path, 40, 0, 4..10, 2);
    acknowledge(&path, 41, 21, 10..12, 0);
    assert_eq!(window(&path), 5, "the episode ends when a packet that was sent in it arrives");
}

#[test]
fn a_spurious_loss_is_undone_with_its_acknowledgement_or_without() {
    for has_more in [true, false] {
        let path = path_with_a_loss(&group("reno"));
        assert!(path.ssthresh().is_some());
        path.on_spurious_loss();
        if has_more {
            acknowledge(&path, 22, 0, 4..6, 4);
        }
        assert_eq!((path.ssthresh(), window(&path) >= 10), (None, true));
        path.on_spurious_loss();
        assert_eq!(path.ssthresh(), None, "once");
    }
}

/// A mark is congestion, whatever becomes of the losses.
#[test]
fn a_reduction_with_a_mark_is_not_undone() {
    let path = path_with_a_loss(&group("reno"));
    path.on_ce(ms(20), 1);
    path.on_spurious_loss();
    acknowledge(&path, 22, 0, 4..6, 4);
    assert_eq!(path.ssthresh(), Some(5 * 1200));
}

#[test]
fn persistent_congestion_leaves_a_packet_more_than_is_in_flight() {
    let path = path_with_a_loss(&group("reno"));
    path.on_persistent_congestion(ms(20));
    // Linux `tcp_enter_loss`.
    assert_eq!((window(&path), path.ssthresh()), (6 + 1, Some(5 * 1200)));
}

#[test]
fn an_mtu_holds_from_the_next_report_on() {
    let path = group("reno").path(Instant::ZERO, MTU);
    send(&path, 0, 0..10);
    path.on_acked(ms(20), ms(0), Some(0));
    path.set_mtu(1400);
    (1..10).for_each(|number| path.on_acked(ms(20), ms(0), Some(number)));
    path.on_acks_end(0);
    assert_eq!((path.window(), path.window()), (20 * 1400, 20 * 1400));
}

/// quinn reports acknowledgements as sent. They take nothing of the window once the stack says what is in flight.
#[test]
fn packets_that_nobody_acknowledges_are_forgotten() {
    let path = group("reno").path(Instant::ZERO, MTU);
    (0..1_000_000).for_each(|_| path.on_sent(ms(0), 150, None));
    send(&path, 1, 0..10);
    acknowledge(&path, 20, 1, 0..10, 0);
    let before = path.window();
    send(&path, 22, 10..12);
    acknowledge(&path, 60, 22, 10..12, 0);
    assert_eq!(path.window(), before, "two packets do not fill it");
}

#[test]
fn a_path_that_is_gone_no_longer_couples_and_its_id_is_used_again() {
    let group = group("lia");
    let growth = |path: &Path, start: u64| {
        send(path, start, start..start + 10);
        let before = path.window();
        acknowledge(path, start + 20, start, start..start + 10, 0);
        path.window() - before
    };
    let first = group.path(Instant::ZERO, MTU);
    drop((group.path(Instant::ZERO, MTU), first.clone()));
    // 70 000 paths one after another: more than there are IDs.
    (0..70_000).for_each(|_| drop(group.path(Instant::ZERO, MTU)));
    assert_eq!(growth(&first, 100), 10 * 1200, "slow start of a path alone");
}

#[test]
fn an_unknown_packet_changes_nothing() {
    let path = group("cubic").path(Instant::ZERO, MTU);
    send(&path, 5, 0..3);
    path.on_acked(ms(20), ms(5), Some(9));
    path.on_acked(ms(20), ms(4), Some(0));
    path.on_lost(ms(20), 17);
    path.on_lost_bytes(ms(20), ms(4), 5000);
    path.on_acks_end(3600);
    assert_eq!((window(&path), path.ssthresh(), path.smoothed_rtt()), (10, None, Span::ZERO));
}

#[test]
fn what_a_stack_cannot_carry_out_is_refused_with_a_sentence() {
    let quinn = StackLimits { name: "quinn 0.11", paces: false, counts_marks: false };
    let refuses = |name| match Algorithm::new(name, &BTreeMap::new(), quinn) {
        Err(Error::Unsupported(reason)) => Some(reason),
        Err(error) => panic!("{error}"),
        Ok(_) => None,
    };
    let refused: Vec<_> = control::registry::REGISTRY.iter().filter(|entry| refuses(entry.name).is_some()).collect();
    let names: Vec<_> = refused.iter().map(|entry| entry.name).collect();
    assert_eq!(names, ["dctcp", "prague", "bbr", "bbr3", "bbr3-draft", "bbr-path", "coupled-bbr", "c-mpbbr"]);
    assert_eq!(refuses("bbr3").expect("refused"), "`bbr3` sets a pacing rate, which quinn 0.11 ignores");
    assert_eq!(
        refuses("dctcp").expect("refused"),
        "`dctcp` needs the number of ECN marks, and quinn 0.11 tells only that there are any"
    );
    let unknown = Algorithm::new("lea", &BTreeMap::new(), FULL).expect_err("no such algorithm").to_string();
    assert!(unknown.starts_with("there is no algorithm `lea`; there are: reno, "), "{unknown}");
}
