//! `ropewalk trace`: one run again, with all of its packets.

use crate::program::{command, folder, write};

const SWEEP: &str = "name = \"traced\"\nduration = \"1s\"\nrepetitions = 2\n[[path]]\nname = \"a\"\nrate = \"10mbit\"\nloss = \"1%\"\n\
                     [[flow]]\nname = \"tcp\"\n[sweep]\n\"path.a.delay\" = [\"5ms\", \"9ms\"]\n";

#[test]
fn a_run_of_a_folder_is_repeated_with_its_packets_in_view() {
    let dir = folder("trace");
    write(&dir, "traced.toml", SWEEP);
    let run = |arguments: &[&str]| command(arguments).current_dir(&dir).output().unwrap();
    assert!(run(&["run", "traced.toml", "--set", "path.a.rate=20mbit", "-q", "--out", "out"]).status.success());
    let traced = run(&[
        "trace",
        "out",
        "--cell",
        "delay=9ms",
        "--seed",
        "2",
        "--pcap",
        "p.pcapng",
        "--events",
        "e.parquet",
        "--page",
        "p.html",
    ]);
    let text = String::from_utf8_lossy(&traced.stdout).into_owned();
    assert!(traced.status.success() && text.contains(", the run of the folder"), "{traced:?}");
    let begins_with = |name: &str, bytes: &[u8]| std::fs::read(dir.join(name)).unwrap().starts_with(bytes);
    assert!(begins_with("p.pcapng", &[0x0a, 0x0d, 0x0d, 0x0a]) && begins_with("e.parquet", b"PAR1"));
    let (page, digest) =
        (std::fs::read_to_string(dir.join("p.html")).unwrap(), text.rsplit("digest   ").next().unwrap());
    for value in ["9ms", "2", digest.split(',').next().unwrap()] {
        assert!(page.contains(&format!("<dd>{value}</dd>")), "{value}");
    }
    for (arguments, message) in [
        (&["trace", "out", "--pcap", "p.pcapng"][..], "path.a.delay is 5ms | 9ms"),
        (&["trace", "out", "--cell", "delay=7ms", "--pcap", "p.pcapng"], "no cell has delay=7ms"),
        (&["trace", "out"], "--pcap <FILE>"),
    ] {
        let output = run(arguments);
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(2) && stderr.contains(message), "{arguments:?}: {stderr}");
    }
}

/// The capture of a run has as many packets as its events have at the near end; what belongs to a run is refused.
#[test]
fn a_capture_has_events_and_no_cell() {
    let dir = folder("trace-capture");
    write(&dir, "traced.toml", &SWEEP.replace("[sweep]\n\"path.a.delay\" = [\"5ms\", \"9ms\"]\n", ""));
    let run = |arguments: &[&str]| command(arguments).current_dir(&dir).output().unwrap();
    assert!(run(&["trace", "traced.toml", "--pcap", "p.pcapng"]).status.success());
    let read = run(&["trace", "p.pcapng", "--events", "e.parquet"]);
    let text = String::from_utf8_lossy(&read.stdout).into_owned();
    assert!(read.status.success() && text.starts_with("at       near: the host that opens connections\n"), "{read:?}");
    assert!(text.ends_with(", flows: 1\nevents   e.parquet\n"), "{text}");
    assert!(std::fs::read(dir.join("e.parquet")).unwrap().starts_with(b"PAR1"));
    assert!(run(&["trace", "p.pcapng", "--page", "p.html"]).status.success());
    assert!(std::fs::read_to_string(dir.join("p.html")).unwrap().contains("<h1>p.pcapng: trace of a capture</h1>"));
    write(&dir, "empty.pcap", "");
    for (arguments, code, message) in [
        (
            &["trace", "p.pcapng", "--seed", "2", "--events", "e.parquet"][..],
            2,
            "p.pcapng is a capture, for which there are",
        ),
        (
            &["trace", "p.pcapng", "--at", "middle", "--events", "e.parquet"],
            2,
            "no place 'middle' of a capture: near or far",
        ),
        (
            &["trace", "traced.toml", "--at", "far", "--events", "e.parquet"],
            2,
            "--at is the place of a capture: add --pcap FILE",
        ),
        (
            &["trace", "empty.pcap", "--events", "e.parquet"],
            4,
            "empty.pcap: is empty; a capture is a file in the format pcap",
        ),
    ] {
        let output = run(arguments);
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(code) && stderr.contains(message), "{arguments:?}: {stderr}");
    }
}
