//! A quota: counted, told at both ends, kept over a restart, changed by a reload.

use crate::causes::events;
use crate::traffic::Transfer;
use crate::tunnel_pair::{IPV4, TunnelPair};
use daemon::event::{Event, EventKind, EventLevel};
use daemon::status::QuotaStatus;
use lab::testbed::{LEFT, RIGHT};
use testing::eventually;

/// The second one is the faster one: all goes by it as long as it is regular.
const LINKS: [&str; 2] = ["rate=20mbit delay=20ms", "rate=100mbit delay=1ms"];
const MEGABYTE: u64 = 1 << 20;

fn quota(pair: &TunnelPair) -> QuotaStatus {
    pair.path(LEFT, 1).quota.expect("the path has one")
}

/// Waits until the second path is a backup at both ends, or at none.
fn wait_for_backup(pair: &TunnelPair, expected: bool) {
    let is_backup = |host: usize| pair.path(host, 1).backup == expected;
    assert!(eventually(|| is_backup(LEFT) && is_backup(RIGHT)), "{expected}: {:#?}", pair.status(RIGHT));
}

fn quota_events(pair: &TunnelPair) -> Vec<Event> {
    events(pair, LEFT, 0).into_iter().filter(|event| event.kind == EventKind::Quota).collect()
}

fn transfer(pair: &TunnelPair, from: usize, bytes: u64) {
    assert_eq!(Transfer::start(pair, from, bytes).finish(), bytes);
}

#[test]
fn a_path_over_its_quota_is_a_backup_at_both_ends_and_stays_one_after_a_restart() {
    let Some(mut pair) = TunnelPair::configured(IPV4, &LINKS) else { return };
    let quota_line = |size: &str| format!("quota = \"{size}\"\nlisten-port = ");
    pair.edit(LEFT, |text| {
        let last = text.rfind("listen-port = ").expect("the second path");
        text[..last].to_owned() + &text[last..].replacen("listen-port = ", &quota_line("4MB"), 1)
    });
    pair.start(RIGHT);
    pair.start_with_state(LEFT);
    [RIGHT, LEFT].into_iter().for_each(|host| pair.wait_until_up(host));
    let device = pair.testbed.device(1).to_owned();
    // What the right host sends counts, too.
    [LEFT, RIGHT].into_iter().for_each(|from| transfer(&pair, from, 4 * MEGABYTE));
    wait_for_backup(&pair, true);
    assert!(eventually(|| quota_events(&pair).iter().any(|event| event.message.starts_with("over its quota"))));
    let told = quota_events(&pair);
    let over = told.iter().find(|event| event.message.starts_with("over its quota")).expect("it is told");
    assert_eq!((over.level, over.path.as_ref()), (EventLevel::Warn, Some(&device)), "{over:?}");
    assert!(over.remedy.as_ref().is_some_and(|remedy| remedy.contains("raise `quota`")), "{over:?}");
    let shown = String::from_utf8(pair.command(LEFT).arg("show").output().unwrap().stdout).unwrap();
    assert!(shown.contains("over-quota backup") && shown.contains(&format!("  {device}: ")), "{shown}");
    assert!(shown.contains("of its quota of 4.0 MB used"), "{shown}");

    // Bulk of either end goes by the other path, unless a machine that stands still makes that one seem silent.
    let is_idle = |from: usize| {
        let before = pair.path(from, 1).sent.bytes;
        transfer(&pair, from, 2 * MEGABYTE);
        pair.path(from, 1).sent.bytes < before + MEGABYTE / 16
    };
    assert!([LEFT, RIGHT].into_iter().all(|from| eventually(|| is_idle(from))), "{:#?}", pair.status(LEFT));

    let used = quota(&pair).used_bytes;
    assert!(used >= 4_000_000 && quota(&pair).exceeded, "{:?}", quota(&pair));
    pair.kill(LEFT);
    pair.start_with_state(LEFT);
    pair.wait_until_started(LEFT);
    assert!(eventually(|| pair.path(LEFT, 1).quota.is_some_and(|quota| quota.exceeded)), "{:#?}", pair.status(LEFT));
    // At most a thousandth of the quota, and what came after the latest look, may be lost.
    let kept = quota(&pair).used_bytes;
    assert!(kept + 100_000 >= used, "{kept} of {used}");
    pair.wait_until_up(LEFT);
    wait_for_backup(&pair, true);

    pair.edit(LEFT, |text| text.replacen("quota = \"4MB\"", "quota = \"1GB\"", 1));
    assert_eq!(pair.reload(LEFT).unwrap(), format!("path {device}: changed\n"));
    wait_for_backup(&pair, false);
    let now = quota(&pair);
    assert!(now.limit_bytes == 1_000_000_000 && now.used_bytes >= kept && !now.exceeded, "{now:?}");
    let is_back = |event: &Event| event.message.contains("no longer over its quota");
    assert!(eventually(|| quota_events(&pair).iter().any(is_back)), "{:#?}", quota_events(&pair));
    let before = pair.path(LEFT, 1).sent.bytes;
    let carries_data = || {
        transfer(&pair, LEFT, 2 * MEGABYTE);
        pair.path(LEFT, 1).sent.bytes > before + MEGABYTE
    };
    assert!(eventually(carries_data), "it is regular again");
}
