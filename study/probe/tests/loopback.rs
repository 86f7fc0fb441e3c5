//! A client and a server on the loopback device: what is counted at both ends, and what is refused.

use measured::{Direction, Parallel, STREAMS, StageKind};
use probe::{Choices, Limits, PathSource, Plan, Server, Session, Source, Token, run};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::time::Duration;

const BUDGET: u64 = 30_000_000;

fn token() -> Token {
    Token::new("a token of this test").unwrap()
}

fn server(limits: Limits) -> SocketAddr {
    Server::start(token(), ([127, 0, 0, 1], 0).into(), limits).unwrap()
}

fn plan(congestions: &[&str]) -> Plan {
    let path = |name: &str, address: [u8; 4]| PathSource { name: name.into(), source: Source::Address(address.into()) };
    Plan::new(Choices {
        paths: vec![path("a", [127, 0, 0, 2]), path("b", [127, 0, 0, 3])],
        repeats: 1,
        flow_time: Duration::from_secs(1),
        congestions: congestions.iter().map(|name| (*name).to_owned()).collect(),
        budget_bytes: BUDGET,
        seed: 3,
    })
    .unwrap()
}

#[test]
fn each_stage_is_measured_within_its_bytes_and_both_ends_count_the_same() {
    let address = server(Limits::default());
    let session = Session::open(address, token(), &Source::Any).unwrap();
    let plan = plan(&["reno", "no-such-control"]);
    let mut told = 0;
    let measured = run(&session, &plan, "test", &mut |news| told = news.number);
    assert_eq!((told, measured.stages.len()), (plan.count(), plan.count()));
    let text = serde_json::to_string(&measured).unwrap();
    assert_eq!(measured::parse(&text, "written").unwrap(), measured, "the document keeps to its own rules");

    let bytes: u64 = measured.stages.iter().filter_map(|stage| stage.bytes).sum();
    assert!(bytes <= plan.bytes() && plan.bytes() <= BUDGET, "{bytes}");
    // The kernel lacks that algorithm at either end; nothing else fails.
    let failed: Vec<_> = measured.stages.iter().filter(|stage| stage.failure.is_some()).collect();
    assert_eq!(failed.len(), 4, "{failed:?}");
    assert!(failed.iter().all(|stage| stage.congestion.as_deref() == Some("no-such-control")));
    assert!(measured.not_measured.iter().any(|line| line.contains("the kernel has no no-such-control")));

    for path in &measured.paths {
        let idle = &path.idle_rtt[0];
        assert_eq!(idle.sent.unwrap(), idle.lost.unwrap() + idle.samples.len() as u64);
        let up = path.udp.iter().find(|udp| udp.direction == Direction::Up).unwrap();
        let down = path.udp.iter().find(|udp| udp.direction == Direction::Down).unwrap();
        assert_eq!(up.received, down.sent, "the server returns each datagram that comes");
        for udp in [up, down] {
            assert_eq!(udp.sent.unwrap(), udp.received.unwrap() + udp.lost.unwrap());
            assert_eq!(udp.loss_runs.as_ref().unwrap().iter().sum::<u64>(), udp.sent.unwrap());
        }
        assert_eq!(path.tcp.len(), 2);
        for tcp in &path.tcp {
            assert_eq!(tcp.congestion.as_deref(), Some("reno"));
            assert!(tcp.bytes.unwrap() > 0 && tcp.bytes.unwrap() <= plan.flow_bytes());
        }
        assert_eq!((path.calls.len(), path.policers.len()), (2, 2));
        assert_eq!(path.parallel.iter().map(|parallel| parallel.streams).collect::<Vec<_>>(), [STREAMS; 2]);
        for Parallel { flow, .. } in &path.parallel {
            let intervals: f64 = flow.goodput_intervals_mbps.iter().map(|mbps| mbps * 1e6 / 8.0 * 0.1).sum();
            assert!(flow.bytes.unwrap() > 0 && flow.bytes.unwrap() <= plan.flow_bytes());
            assert!(intervals <= flow.bytes.unwrap() as f64 + 1.0, "{intervals} of {flow:?}");
        }
    }
    let together: Vec<_> = measured.together.iter().map(|together| together.flows.len()).collect();
    assert_eq!(together, [2, 2]);
    assert!(measured.stages.iter().any(|stage| stage.kind == StageKind::Together));
}

#[test]
fn another_token_a_second_session_and_an_unknown_session_are_refused() {
    let address = server(Limits::default());
    let other = Token::new("the token of another").unwrap();
    let error = Session::open(address, other, &Source::Any).unwrap_err().to_string();
    assert_eq!(error, "the other end refuses: the token is another one");
    let first = Session::open(address, token(), &Source::Any).unwrap();
    let error = Session::open(address, token(), &Source::Any).unwrap_err().to_string();
    assert_eq!(error, "the other end refuses: busy with another session");
    drop(first);
    assert!(testing::eventually(|| Session::open(address, token(), &Source::Any).is_ok()), "the first has ended");
}

#[test]
fn a_flow_ends_at_its_bytes_and_a_session_at_those_of_the_server() {
    let address = server(Limits { bytes: 1000, ..Limits::default() });
    let session = Session::open(address, token(), &Source::Any).unwrap();
    let measured = run(&session, &plan(&["reno"]), "test", &mut |_| {});
    let failed = measured.stages.iter().filter(|stage| stage.congestion.is_some());
    assert!(failed.clone().count() > 0);
    for stage in failed {
        assert_eq!(stage.failure.as_deref(), Some("the other end refuses: the session has used its bytes"));
    }
}

#[test]
fn bytes_that_are_no_request_get_one_line_or_nothing() {
    let address = server(Limits::default());
    for bytes in [&b"GET / HTTP/1.1\r\n\r\n"[..], &[0xff; 300], b"open\n", b"\n"] {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.write_all(bytes).unwrap();
        let mut answer = String::new();
        // A reset is an answer, too: the server has closed before it read everything.
        let _ = stream.read_to_string(&mut answer);
        assert!(answer.lines().count() <= 2, "{answer}");
    }
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
    for length in [0, 8, 56, 1200] {
        socket.send_to(&vec![7; length], address).unwrap();
    }
    assert!(socket.recv(&mut [0; 2000]).is_err(), "no datagram of a stranger is answered");
    // It still serves.
    Session::open(address, token(), &Source::Any).unwrap();
}
