//! Files of schedulers' policies, and the scheduler `policy` of the registry.

use control::{FILE, ParamValue};
use ropewalk_policy::{PolicyFile, SchedulerDecision, SchedulerFile, packet_observation_len};
use schedule::{PathView, Pick, Scheduler, SchedulerView};
use std::collections::BTreeMap;
use std::path::Path;
use units::{Instant, PathId, Span};

fn bytes(name: &str) -> Vec<u8> {
    std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/models").join(name)).unwrap()
}

fn scheduler(name: &str) -> Result<Box<dyn Scheduler>, String> {
    ropewalk_policy::register();
    let file = ParamValue::File { path: name.into(), bytes: bytes(name).into() };
    let entry = schedule::find("policy").expect("registered");
    entry.scheduler(&[], 0, &BTreeMap::from([(FILE.to_owned(), file)])).map_err(|error| error.to_string())
}

/// A path with this smoothed RTT in ms, and `in_flight` packets of its window of ten.
fn path(srtt: u64, in_flight: u32) -> PathView {
    let (srtt, has_room) = (Span::from_millis(srtt), in_flight < 10);
    PathView { srtt, cwnd: 10, in_flight, has_room, ..PathView::without_measurements() }
}

fn pick(scheduler: &mut dyn Scheduler, paths: &[PathView]) -> Option<Pick> {
    scheduler.pick(&SchedulerView {
        now: Instant::ZERO,
        packet_bytes: 1448,
        fragment_bytes: 1448,
        paths,
        snd_nxt: 0,
        snd_una: 0,
        unsent_packets: 100,
        rwnd_left_packets: 100,
        rwnd_stalls: 0,
    })
}

const FIRST: Option<Pick> = Some(Pick { path: PathId(0), packet: schedule::PacketChoice::Next });
const SECOND: Option<Pick> = Some(Pick { path: PathId(1), packet: schedule::PacketChoice::Next });

#[test]
fn the_metadata_says_what_a_scheduler_sees_and_decides() {
    assert_eq!(packet_observation_len(2), 19);
    assert_eq!(SchedulerFile::read(&bytes("by-packet.onnx")).unwrap().decision(), &SchedulerDecision::Packet);
    let by_path = SchedulerFile::read(&bytes("by-path.onnx")).unwrap();
    let SchedulerDecision::Path(settings) = by_path.decision() else { panic!("{:?}", by_path.decision()) };
    assert_eq!((settings.paths, settings.interval.to_string().as_str()), (2, "50ms"));
    assert_eq!(settings.observation.to_string(), "loss_ratio,queue_delay_ms");
    let by_weights = SchedulerFile::read(&bytes("by-weights.onnx")).unwrap();
    assert!(matches!(by_weights.decision(), SchedulerDecision::Weights(_)));
}

#[test]
fn wrong_metadata_of_a_scheduler_is_refused_with_its_key() {
    for (name, phrase) in [
        ("no-metadata.onnx", "metadata `ropewalk.version`: is missing"),
        ("group.onnx", "`window_change(1)` is a congestion control's; name the file in `congestion`"),
        ("wrong-action.onnx", "metadata `ropewalk.action`: `steer` is not an action of a scheduler"),
        ("wrong-packet-action.onnx", "metadata `ropewalk.action`: `weights`; at a packet it is `path`"),
        ("wrong-packet-history.onnx", "metadata `ropewalk.history`: `2`; at a packet there is only 1"),
        ("wrong-packet-interval.onnx", "metadata `ropewalk.interval`: `10ms`; the observation `packet` is of each"),
        ("wrong-packet-observation.onnx", "metadata `ropewalk.observation`: `orca`; what is decided at a packet"),
        ("wrong-packet-paths.onnx", "metadata `ropewalk.paths`: `1` is not a number from 2 to 32"),
        ("wrong-packet-size.onnx", "input of 19 numbers, the observation has 27"),
    ] {
        let message = SchedulerFile::read(&bytes(name)).unwrap_err().to_string();
        assert!(message.contains(phrase), "{name}: {message}");
    }
    let message = PolicyFile::read(&bytes("by-path.onnx")).unwrap_err().to_string();
    assert!(message.contains("`path` is a scheduler's; name the file in `scheduler`"), "{message}");
}

#[test]
fn the_registry_refuses_a_missing_file_and_a_bad_one_and_passes_on_notes() {
    ropewalk_policy::register();
    let entry = schedule::find("policy").unwrap();
    assert!(entry.needs_file());
    let missing = entry.scheduler(&[], 0, &BTreeMap::new()).unwrap_err();
    assert_eq!((missing.key.as_str(), missing.to_string().contains("`file` is missing")), ("file", true));
    assert_eq!(scheduler("nan.onnx").unwrap_err(), "`file`: tensor `w` contains NaN or infinity");
    assert_eq!(
        scheduler("rounded-packet.onnx").unwrap().notes(),
        ["the model's 64-bit floats were rounded to 32 bits"]
    );
    assert!(scheduler("by-packet.onnx").unwrap().notes().is_empty());
}

/// `by-packet` has the numbers 40 for room, -1 per ms of RTT, and -0.5 per packet in flight.
#[test]
fn a_packet_takes_the_path_with_the_greatest_number_and_waits_for_it() {
    let mut policy = scheduler("by-packet.onnx").unwrap();
    assert_eq!(pick(&mut *policy, &[path(20, 0), path(30, 0)]), FIRST);
    assert_eq!(pick(&mut *policy, &[path(40, 0), path(30, 0)]), SECOND);
    assert_eq!(pick(&mut *policy, &[path(30, 0), path(30, 0)]), FIRST, "the first of equal ones");
    assert_eq!(pick(&mut *policy, &[path(30, 2), path(30, 0)]), SECOND);
    // 40 - 100 against -5 - 20: the packet waits for the fast path, until that has room.
    assert_eq!(pick(&mut *policy, &[path(20, 10), path(100, 0)]), None);
    assert_eq!(pick(&mut *policy, &[path(20, 10), path(1, 0)]), None, "the path is chosen already");
    assert_eq!(pick(&mut *policy, &[path(20, 9), path(1, 0)]), FIRST);
    assert_eq!(pick(&mut *policy, &[path(20, 9), path(1, 0)]), SECOND, "the next packet");
    let down = PathView { active: false, has_room: false, ..path(1, 0) };
    assert_eq!(pick(&mut *policy, &[down, path(100, 0)]), SECOND, "there is no choice");
    assert_eq!(policy.failure(), None);
}

#[test]
fn minrtt_takes_the_place_of_a_scheduler_that_fails() {
    for model in ["nan-packet.onnx", "by-packet.onnx"] {
        let mut policy = scheduler(model).unwrap();
        let paths = [path(30, 10), path(20, 10), path(10, 10)];
        let count = if model == "nan-packet.onnx" { 2 } else { 3 };
        let with_room = |index: usize| {
            let mut paths = paths;
            paths[index] = PathView { has_room: true, in_flight: 0, ..paths[index] };
            paths[..count].to_vec()
        };
        assert_eq!(pick(&mut *policy, &with_room(1)), SECOND, "{model}");
        assert_eq!(pick(&mut *policy, &with_room(0)), FIRST, "{model}: it never waits");
        let reason = match count {
            2 => "scheduler: the policy answered NaN",
            _ => "scheduler: the policy decides for 2 paths, but there are more",
        };
        assert_eq!(policy.failure(), Some(reason));
    }
}
