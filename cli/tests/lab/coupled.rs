//! Coupled congestion control on this machine's own kernel, by Ropewalk's eBPF programs.

use crate::{Study, study};

/// The size of the flow, bytes: some two thousand packets.
const SIZE: u64 = 3_000_000;

/// An MPTCP flow over two paths of 10 Mbit/s.
fn run(name: &str, congestion: &str) -> Option<Study> {
    let path = |name: &str| crate::path(name, 10, 40);
    let flow = format!("[[flow]]\nname = \"data\"\nkind = \"mptcp\"\nsize = \"{SIZE}b\"\ncongestion = {congestion}\n");
    study(name, crate::MAX_SECONDS, &[path("one"), path("two"), flow].concat(), "netns")
}

/// The name is the kernel's own for each subflow. MPTCP's options leave at most 1428 of 1538 bytes of payload, and a path
/// with its queue holds 57 packets: what is written beyond that goes to the other one.
#[test]
fn both_subflows_run_the_program_and_deliver_all() {
    let Some(study) = run("lab-netns-lia", "\"lia\"") else { return };
    study.assert_carried(SIZE, 20.0 * 1428.0 / 1538.0);
    let flow = &study.raw("results.json")["flows"][0];
    let names: Vec<&str> =
        flow["congestion_controls"].as_array().unwrap().iter().map(|seen| seen[1].as_str().unwrap()).collect();
    assert_eq!(names, ["rw_lia", "rw_lia"], "one of each subflow: {flow}");
    let sent: Vec<u64> = study.run["subflows"]
        .as_array()
        .unwrap()
        .iter()
        .map(|subflow| subflow["sent_packets"].as_u64().unwrap())
        .collect();
    assert!(sent.len() == 2 && sent.iter().all(|packets| *packets > 57), "{sent:?}");
    assert_eq!(study.run["flows"][0]["congestion_control"], "lia", "the record has the registry's name");
}
