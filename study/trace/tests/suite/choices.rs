//! The scheduler's choices and what it saw of the paths, and the RTT samples, are those of the run.

use crate::{FLOWS, experiment};
use ropewalk_trace::events;
use std::collections::BTreeMap;

/// Data that is sent for the first time goes to the path that a choice names, each number once, and the chosen path had room as
/// the scheduler saw it (the contract of `Scheduler::pick`).
#[test]
fn each_new_packet_has_the_path_that_the_scheduler_chose_for_it() {
    for (flows, is_mptcp) in [(FLOWS[1], true), (FLOWS[2], false)] {
        for scheduler in ["minrtt", "blest", "roundrobin"] {
            let flows = format!("{flows}scheduler = \"{scheduler}\"\n");
            let (run, rows) = events(&experiment(&flows), 7).expect("a run");
            let (mut chosen, mut views, mut waits) = (BTreeMap::new(), BTreeMap::new(), 0);
            for row in &rows {
                match row.event {
                    "view" => {
                        views.insert(row.path.clone(), row);
                    }
                    "choice" => {
                        let path = row.path.clone();
                        assert_eq!(views[&path].room, Some("yes"), "{flows}: {row:?}");
                        for data in row.data_seq.unwrap_or(0)..row.data_end.unwrap_or(0) {
                            chosen.entry(data).or_insert(path.clone());
                        }
                    }
                    "wait" => {
                        waits += 1;
                        assert!(views.values().any(|view| view.room == Some("yes")), "{flows}: {row:?}");
                    }
                    "sent" if is_mptcp && row.packet == Some("data") => {
                        assert_eq!(chosen.get(&row.data_seq.expect("a number")), Some(&row.path), "{flows}: {row:?}");
                    }
                    _ => {}
                }
            }
            let numbers = chosen.keys().copied().zip(0..).all(|(data, place)| data == place);
            assert!(numbers && chosen.len() > 1000, "{flows}: {}", chosen.len());
            assert!(chosen.len() as u64 <= run.flows[0].sent_packets, "{flows}");
            assert_eq!(
                waits > 0,
                scheduler == "blest" && is_mptcp,
                "{flows}: {waits} waits; minrtt and roundrobin never do"
            );
        }
    }
}

#[test]
fn rtt_samples_are_those_of_the_record() {
    for flows in [FLOWS[0], FLOWS[1], FLOWS[2], FLOWS[4]] {
        let (run, rows) = events(&experiment(flows), 7).expect("a run");
        let samples: Vec<f64> = rows.iter().filter(|row| row.event == "rtt").filter_map(|row| row.rtt_ms).collect();
        let mean = samples.iter().sum::<f64>() / samples.len() as f64;
        let (recorded, max) = (&run.flows[0].rtt_ms, samples.iter().copied().fold(0.0, f64::max));
        assert!(
            (mean - recorded.mean).abs() < 1e-6 && (max - recorded.max).abs() < 1e-6,
            "{flows}: {mean} {max} {recorded:?}"
        );
        assert!(samples.len() > 50, "{flows}: {}", samples.len());
    }
}

/// What the paths of a tunnel have lost is the record's, and the scheduler chooses among paths with room.
#[test]
fn the_paths_of_a_tunnel_have_their_states_and_choices() {
    let (run, rows) = events(&experiment(FLOWS[5]), 7).expect("a run");
    let of = |event: &str, path: &str| {
        let is_it = |row: &&store::EventRow| {
            row.event == event
                && row.flow.is_none()
                && row.path.as_deref() == Some(path)
                && row.direction == Some("forward")
        };
        rows.iter().filter(is_it).collect::<Vec<_>>()
    };
    for path in &run.paths {
        let states = of("state", &path.name);
        let lost = states.last().and_then(|row| row.lost_packets);
        assert_eq!(lost, path.tunnel.map(|sender| sender.declared_lost_packets), "{}", path.name);
        assert!(states.len() > 1000 && of("choice", &path.name).len() > 100, "{}: {}", path.name, states.len());
    }
    assert!(run.paths[0].tunnel.is_some_and(|sender| sender.declared_lost_packets > 5), "{:?}", run.paths);
    let mut rooms = BTreeMap::new();
    for row in rows.iter().filter(|row| row.flow.is_none()) {
        let key = (row.direction, row.path.clone());
        match row.event {
            "view" => drop(rooms.insert(key, row.room)),
            "choice" => assert_eq!(rooms.get(&key), Some(&Some("yes")), "{row:?}"),
            _ => {}
        }
    }
}
