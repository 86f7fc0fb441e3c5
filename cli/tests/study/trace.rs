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
