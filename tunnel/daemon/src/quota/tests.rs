use super::*;
use crate::status::Traffic;
use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::Path;

/// 2026-11-15, 12:00 UTC.
const NOW: u64 = 1_794_744_000;
const DAY: u64 = 86_400;
const QUOTA: Quota = Quota { bytes: 1_000_000_000, reset_day: 1 };

fn path(quota: Quota) -> ConfiguredPath {
    ConfiguredPath { quota: Some(quota), ..ConfiguredPath::any(0, "lte".into()) }
}

fn totals(sent: u64, received: u64) -> Vec<UplinkStatus> {
    let traffic = |bytes| Traffic { packets: bytes / 1000, bytes };
    vec![UplinkStatus { name: "lte".into(), sent: traffic(sent), received: traffic(received) }]
}

/// The messages of an update with these totals in MB.
fn update(keeper: &mut QuotaKeeper, now_s: u64, path: &ConfiguredPath, sent: u64, received: u64) -> Vec<String> {
    let uplinks = totals(sent * 1_000_000, received * 1_000_000);
    let events = keeper.update(now_s, std::slice::from_ref(path), &uplinks);
    events.into_iter().map(|event| event.message).collect()
}

fn used_mb(keeper: &QuotaKeeper) -> u64 {
    keeper.statuses()["lte"].used_bytes / 1_000_000
}

fn file(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("ropewalk-quota-{name}-{}", std::process::id()));
    let _ = fs::remove_file(&path);
    path
}

fn open(path: &Path) -> (QuotaKeeper, Vec<Event>) {
    QuotaKeeper::open(Some(path.to_path_buf()), true, None)
}

/// A keeper without a file, which has told that.
fn in_memory() -> QuotaKeeper {
    let (keeper, events) = QuotaKeeper::open(None, true, None);
    assert!(events[0].message.contains("counted in memory") && events[0].remedy.is_some(), "{events:?}");
    keeper
}

#[test]
fn a_path_is_warned_of_at_80_percent_exceeded_at_100_and_as_configured_after_the_reset() {
    let (mut keeper, path) = (in_memory(), path(QUOTA));
    assert!(update(&mut keeper, NOW, &path, 300, 499).is_empty());
    let warned = update(&mut keeper, NOW + 1, &path, 301, 499);
    assert_eq!(warned, ["80 % of its quota: 800.0 MB of 1.0 GB are used, until 2026-12-01"]);
    assert!(update(&mut keeper, NOW + 2, &path, 400, 599).is_empty() && !keeper.is_exceeded("lte"));
    let exceeded = update(&mut keeper, NOW + 3, &path, 400, 600);
    assert!(exceeded[0].starts_with("over its quota: 1.0 GB of 1.0 GB are used; it is a backup"), "{exceeded:?}");
    assert!(keeper.is_exceeded("lte"));
    let first = 1_796_083_200;
    assert!(update(&mut keeper, first - 1, &path, 400, 601).is_empty());
    let reset = update(&mut keeper, first, &path, 400, 603);
    assert!(
        reset[0].starts_with("a new quota period has begun, until 2027-01-01, and the path is regular again"),
        "{reset:?}"
    );
    assert_eq!((reset.len(), used_mb(&keeper), keeper.is_exceeded("lte")), (1, 2, false));
}

#[test]
fn another_quota_or_reset_day_keeps_the_count() {
    let (mut keeper, path_1) = (in_memory(), path(QUOTA));
    update(&mut keeper, NOW, &path_1, 1200, 0);
    assert!(keeper.is_exceeded("lte"));
    let larger = path(Quota { bytes: 2_000_000_000, reset_day: 20 });
    let told = update(&mut keeper, NOW + 1, &larger, 1200, 0);
    assert_eq!(told, ["no longer over its quota: 1.2 GB of 2.0 GB are used; the path is regular again"]);
    assert_eq!((used_mb(&keeper), date(keeper.statuses()["lte"].resets_unix_ms / 1000)), (1200, "2026-11-20".into()));
    let smaller = path(Quota { bytes: 1_100_000_000, reset_day: 10 });
    assert_eq!(update(&mut keeper, NOW + 2, &smaller, 1200, 0).len(), 1);
    assert!(keeper.is_exceeded("lte"));
    let without = ConfiguredPath { quota: None, ..smaller.clone() };
    assert!(update(&mut keeper, NOW + 3, &without, 1300, 0).is_empty());
    assert!(!keeper.is_exceeded("lte") && keeper.statuses().is_empty());
    update(&mut keeper, NOW + 4, &smaller, 1310, 0);
    assert_eq!(used_mb(&keeper), 1210, "what it carried without a quota is not counted");
}

#[test]
fn a_clock_that_goes_back_resets_nothing_and_is_told_of_if_it_is_far_off() {
    let (mut keeper, path) = (in_memory(), path(QUOTA));
    update(&mut keeper, NOW, &path, 100, 0);
    // As a router without a clock has it before it knows the time.
    let told = update(&mut keeper, 60, &path, 200, 0);
    assert!(told.len() == 1 && told[0].contains("the clock says 1970-01-01"), "{told:?}");
    assert!(update(&mut keeper, 61, &path, 210, 0).is_empty(), "once");
    assert!(update(&mut keeper, NOW + 1, &path, 220, 0).is_empty());
    assert_eq!(used_mb(&keeper), 220);
    // Over the reset and back: the count of the new month stays, and the next reset is in its turn.
    let first = 1_796_083_200;
    update(&mut keeper, first + 10, &path, 230, 0);
    assert_eq!(used_mb(&keeper), 10);
    assert!(update(&mut keeper, first - 3600, &path, 235, 0).is_empty());
    assert!(update(&mut keeper, first + 20, &path, 240, 0).is_empty());
    assert_eq!(used_mb(&keeper), 20);
    assert_eq!(update(&mut keeper, first + 31 * DAY, &path, 250, 0).len(), 1);
    assert_eq!(used_mb(&keeper), 10);
}

#[test]
fn counters_of_a_new_socket_begin_at_zero_and_their_bytes_are_added() {
    let (mut keeper, path) = (in_memory(), path(QUOTA));
    update(&mut keeper, NOW, &path, 100, 50);
    update(&mut keeper, NOW + 1, &path, 10, 60);
    assert_eq!(used_mb(&keeper), 170);
}

#[test]
fn a_restart_after_a_kill_loses_less_than_a_thousandth_of_the_quota() {
    let (file, path) = (file("restart"), path(QUOTA));
    let (mut keeper, events) = open(&file);
    assert!(events.is_empty());
    for kilobytes in 0..2000 {
        keeper.update(NOW + 1, std::slice::from_ref(&path), &totals(kilobytes * 1000, 0));
    }
    let used = keeper.statuses()["lte"].used_bytes;
    // As after `kill -9`: nothing is written at the end.
    drop(keeper);
    let (mut keeper, events) = open(&file);
    assert!(events.is_empty());
    assert!(update(&mut keeper, NOW + 2, &path, 0, 0).is_empty());
    let kept = keeper.statuses()["lte"].used_bytes;
    assert!(kept <= used && used - kept < QUOTA.bytes / 1000, "{kept} of {used}");
    assert_eq!(update(&mut keeper, NOW + 3, &path, 1100, 0).len(), 1);
    drop(keeper);
    let (mut keeper, _) = open(&file);
    assert_eq!(update(&mut keeper, NOW + 4, &path, 0, 0).len(), 1, "who looks at the journal is told again");
    assert!(keeper.is_exceeded("lte"));
    // The month ends while the daemon is not running.
    drop(keeper);
    let (mut keeper, _) = open(&file);
    assert_eq!(update(&mut keeper, NOW + 40 * DAY, &path, 3, 0).len(), 1);
    assert_eq!((used_mb(&keeper), keeper.is_exceeded("lte")), (3, false));
    fs::remove_file(file).unwrap();
}

#[test]
fn of_a_file_with_one_damaged_copy_the_other_is_read_and_one_with_two_is_set_aside() {
    let (file, path) = (file("damaged"), path(QUOTA));
    let (mut keeper, _) = open(&file);
    update(&mut keeper, NOW, &path, 100, 0);
    update(&mut keeper, NOW + 61, &path, 200, 0);
    drop(keeper);
    let damage =
        |start: u64| OpenOptions::new().write(true).open(&file).unwrap().write_all_at(b"x", start + 30).unwrap();
    // The second write is in the first copy.
    damage(0);
    let (mut keeper, events) = open(&file);
    assert!(events.is_empty());
    update(&mut keeper, NOW + 62, &path, 0, 0);
    assert_eq!(used_mb(&keeper), 100);
    drop(keeper);
    damage(0);
    damage(16 << 10);
    let (mut keeper, events) = open(&file);
    assert!(events[0].message.contains("is damaged: quotas are counted from 0"), "{events:?}");
    let aside = file.with_extension("").into_os_string().into_string().unwrap();
    assert!(fs::remove_file(format!("{aside}.damaged")).is_ok());
    update(&mut keeper, NOW + 63, &path, 7, 0);
    assert_eq!(used_mb(&keeper), 7);
    drop(keeper);
    fs::remove_file(file).unwrap();
}

#[test]
fn hostile_files_are_set_aside_or_refused_and_quotas_work_nevertheless() {
    let path = path(QUOTA);
    for (name, bytes) in [("text", &b"[{\"path\":\"lte\"}]"[..]), ("zeros", &[0; 40_000]), ("ones", &[0xff; 70_000])] {
        let file = file(name);
        fs::write(&file, bytes).unwrap();
        let (mut keeper, events) = open(&file);
        assert_eq!(events.len(), 1, "{name}: {events:?}");
        assert_eq!(update(&mut keeper, NOW, &path, 1000, 0).len(), 1);
        assert!(keeper.is_exceeded("lte"));
        drop(keeper);
        let aside = format!("{}.damaged", file.display());
        assert_eq!(fs::read(&aside).unwrap(), bytes);
        [PathBuf::from(aside), file].iter().for_each(|file| fs::remove_file(file).unwrap());
    }
    // A link to somebody's file, and a folder.
    let (target, link) = (file("target"), file("link"));
    fs::write(&target, "a letter").unwrap();
    std::os::unix::fs::symlink(&target, &link).unwrap();
    for place in [link.clone(), std::env::temp_dir()] {
        let (mut keeper, events) = open(&place);
        assert!(events[0].message.contains("counted in memory"), "{events:?}");
        assert_eq!(update(&mut keeper, NOW, &path, 1000, 0).len(), 1);
        assert!(keeper.is_exceeded("lte"));
    }
    assert_eq!(fs::read_to_string(&target).unwrap(), "a letter");
    [target, link].iter().for_each(|file| fs::remove_file(file).unwrap());
}

#[test]
fn absurd_numbers_in_a_whole_file_neither_overflow_nor_end_anything() {
    let (file, path) = (file("absurd"), path(QUOTA));
    let counter = |path: &str, resets_s| {
        let path = path.to_owned();
        Counter { path, sent_bytes: u64::MAX, received_bytes: u64::MAX, resets_s, reset_day: 1 }
    };
    let (mut quota_file, _, _) = QuotaFile::open(&Place::new(&file, None).unwrap()).unwrap();
    quota_file.write(&[counter("lte", u64::MAX), counter("gone", 0)]).unwrap();
    drop(quota_file);
    let (mut keeper, events) = open(&file);
    assert!(events.is_empty());
    let told = update(&mut keeper, NOW, &path, 1, 1);
    assert!(told.len() == 2 && told[0].contains("the clock is or was wrong"), "{told:?}");
    assert!(keeper.is_exceeded("lte"));
    let names: String = "n".repeat(20_000);
    let long = ConfiguredPath { name: names, ..path };
    let told = keeper.update(NOW + 1, &[long], &totals(1, 1));
    let told: Vec<_> = told.iter().filter(|event| event.message.contains("not written")).collect();
    assert!(told.len() <= 1, "{told:?}");
    drop(keeper);
    fs::remove_file(file).unwrap();
}
