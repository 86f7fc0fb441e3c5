//! `ropewalk probe` between two hosts of this machine, over links whose rate, delay and loss are known.

use crate::cpu_lock;
use lab::testbed::{LEFT, RIGHT, Testbed};
use measured::{Direction, MeasuredPath, RttSample, parse};
use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};
use testing::{Reason, skip};

const PROGRAM: &str = env!("CARGO_BIN_EXE_ropewalk");
const TOKEN: &str = "a token of this test";
/// Rate, bit/s, delay of one way, ms, and share lost of each path.
const TRUTH: [(f64, f64, f64); 2] = [(6e6, 15.0, 0.0), (4e6, 5.0, 0.05)];
const LINKS: [&str; 2] = ["rate=6mbit delay=15ms", "rate=4mbit delay=5ms loss=5%"];
/// What a link may have passed on before a stage began, and its bucket, bytes.
const SLACK: f64 = 20_000.0;

/// The server's process, which ends with this value.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Two hosts; the first one's addresses each have the link of their network.
fn testbed() -> Option<Testbed> {
    lab::testbed::possible().map_err(|reason| skip(Reason::Missing, &reason)).ok()?;
    let testbed = Testbed::pair(&[PROGRAM, "lab-agent"], &LINKS).unwrap();
    let (source, gateway, device) = (testbed.v4(1, LEFT), testbed.v4(1, RIGHT), testbed.device(1));
    testbed.run(LEFT, &format!("ip rule add from {source} table 7")).unwrap();
    testbed.run(LEFT, &format!("ip route add default via {gateway} dev {device} table 7")).unwrap();
    Some(testbed)
}

fn serve(testbed: &Testbed) -> Server {
    let mut command = testbed.command(RIGHT, PROGRAM);
    command.args(["probe", "--serve", "--token", TOKEN]).stdout(Stdio::piped());
    let mut server = Server(command.spawn().unwrap());
    let mut line = String::new();
    BufReader::new(server.0.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert!(line.starts_with("listening at"), "{line}");
    server
}

/// Arguments after `probe`; the document, or what went wrong.
fn probe(testbed: &Testbed, arguments: &[&str]) -> Result<measured::Measured, String> {
    let host = testbed.v4(0, RIGHT).to_string();
    let mut command = testbed.command(LEFT, PROGRAM);
    let output = command.args(["probe", &host, "--json", "-"]).args(arguments).output().unwrap();
    let [stdout, stderr] = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    if output.status.success() { Ok(parse(&stdout, "standard output").unwrap()) } else { Err(stderr) }
}

#[test]
fn no_path_is_measured_above_its_link_or_sooner_than_its_delay_and_losses_are_found() {
    let Some(testbed) = testbed() else { return };
    let _cpu_lock = cpu_lock();
    let _server = serve(&testbed);
    let paths = [0, 1].map(|link| format!("p{link}={}", testbed.v4(link, LEFT)));
    let options = ["--token", TOKEN, "--repeats", "1", "--seconds", "1", "--congestion", "reno", "--budget", "40MB"];
    let paths = ["--path", &paths[0], "--path", &paths[1]];
    let measured = probe(&testbed, &[&options[..], &paths].concat()).unwrap();

    let failed: Vec<_> = measured.stages.iter().filter(|stage| stage.failure.is_some()).collect();
    assert!(failed.is_empty(), "{failed:?}");
    let bytes: u64 = measured.stages.iter().filter_map(|stage| stage.bytes).sum();
    assert!(bytes <= measured.options.as_ref().unwrap().planned_bytes.unwrap() && bytes <= 40_000_000);
    for stage in measured.stages.iter().filter(|stage| stage.congestion.is_some()) {
        let rate = |name: &String| TRUTH[usize::from(name == "p1")].0;
        let limit = stage.paths.iter().map(rate).sum::<f64>() / 8.0 * stage.seconds;
        // A call's datagrams go both ways, 50 of 160 bytes in a second.
        let call = 2.0 * 50.0 * 160.0 * stage.seconds;
        assert!(stage.bytes.unwrap() as f64 <= limit + call + SLACK, "{stage:?}");
    }
    for (path, (_, delay_ms, loss)) in measured.paths.iter().zip(TRUTH) {
        assert_times(path, 2.0 * delay_ms);
        assert_losses(path, loss);
    }
    assert_eq!(measured.together.len(), 2);
}

/// No round trip is shorter than both ways.
fn assert_times(path: &MeasuredPath, least_ms: f64) {
    let samples = path.idle_rtt.iter().flat_map(|idle| &idle.samples);
    let samples: Vec<&RttSample> = samples.chain(path.calls.iter().flat_map(|call| &call.rtt_samples)).collect();
    assert!(!samples.is_empty());
    samples.iter().for_each(|sample| assert!(sample.rtt_ms >= least_ms, "{}: {sample:?}", path.name));
}

/// Both ends count the same datagrams, and the link's losses are among the lost ones.
fn assert_losses(path: &MeasuredPath, loss: f64) {
    let of = |direction| path.udp.iter().find(|udp| udp.direction == direction).unwrap();
    let (up, down) = (of(Direction::Up), of(Direction::Down));
    assert_eq!(up.received, down.sent);
    for udp in [up, down] {
        let (sent, lost) = (udp.sent.unwrap() as f64, udp.lost.unwrap() as f64);
        let runs = udp.loss_runs.as_ref().unwrap();
        assert_eq!(runs.iter().skip(1).step_by(2).sum::<u64>() as f64, lost);
        // A busy machine may lose more, never less: six standard deviations below the mean.
        let least = sent * loss - 6.0 * (sent * loss * (1.0 - loss)).sqrt();
        assert!(lost >= least, "{}: {lost} of {sent} lost", path.name);
    }
}

#[test]
fn what_cannot_be_measured_is_refused_with_what_would_help() {
    let Some(testbed) = testbed() else { return };
    let _server = serve(&testbed);
    let refusal = |arguments: &[&str]| probe(&testbed, arguments).unwrap_err();
    assert!(refusal(&[]).contains("--token, or ROPEWALK_PROBE_TOKEN"));
    assert!(refusal(&["--token", "another token than this"]).contains("the token is another one"));
    assert!(refusal(&["--token", TOKEN, "--budget", "1MB"]).contains("need at least"));
    assert!(refusal(&["--token", TOKEN, "--path", "x=nothing0"]).contains("neither an address nor a device"));
    testbed.run(LEFT, "ip link add wwan0 type veth peer name wwan1").unwrap();
    let error = refusal(&["--token", TOKEN, "--path", "lte=wwan0"]);
    assert!(error.contains("wwan0 seems to be metered") && error.contains("--yes"), "{error}");
}
