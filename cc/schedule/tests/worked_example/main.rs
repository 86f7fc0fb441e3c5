//! The worked example of docs/how-to/write-a-scheduler.md: a new scheduler in a file as it would stand in cc/schedule/src,
//! and what its page says of it.

mod least_filled;

use ropewalk_schedule::{Constructor, Fill, Needs, PathView, Pick, Scheduler, SchedulerEntry, SchedulerView};
use std::collections::BTreeMap;
use units::Instant;

/// The paths that carry packets one after another, over windows of these sizes.
fn order<const N: usize>(windows: [u32; N], given: &BTreeMap<String, params::ParamValue>) -> Vec<u16> {
    let mut scheduler = least_filled::ENTRY.scheduler(&[], 0, given).expect("right parameters");
    let mut paths = windows.map(|window| PathView { cwnd: window, ..PathView::without_measurements() });
    let now = Instant::ZERO;
    let [unsent_packets, rwnd_left_packets] = [u64::MAX; 2];
    let pick_next = |snd_nxt: u64| {
        let view = SchedulerView {
            now,
            packet_bytes: 1448,
            fragment_bytes: 1448,
            paths: &paths,
            snd_nxt,
            snd_una: 0,
            unsent_packets,
            rwnd_left_packets,
            rwnd_stalls: 0,
        };
        let path = scheduler.pick(&view)?.path;
        let chosen = &mut paths[path.index()];
        chosen.in_flight += 1;
        chosen.has_room = chosen.in_flight < chosen.cwnd;
        Some(path.0)
    };
    (0..).map_while(pick_next).collect()
}

#[test]
fn the_example_fills_windows_evenly_up_to_its_limit() {
    // Two of four packets are half a window, three are 0.75: one more is allowed, and with it the window is full.
    assert_eq!(order([4, 2], &BTreeMap::new()), [0, 1, 0, 0, 1, 0]);
    let max_fill = BTreeMap::from([("max_fill".to_owned(), params::ParamValue::Number(0.4))]);
    assert_eq!(order([4, 2], &max_fill), [0, 1, 0], "above 0.4 there is no more");
}

#[test]
fn the_page_shows_the_example_as_it_is_compiled() {
    let page = include_str!("../../../../docs/how-to/write-a-scheduler.md");
    let file = include_str!("least_filled.rs");
    assert!(page.contains(&format!("```rust\n{file}```\n")), "the page should show:\n{file}");
}
