//! The example programs of `ropewalk-quinn` and `ropewalk-noq`: a file arrives over loopback, and over links between two network
//! namespaces that mark packets, one of which is pulled.

#[expect(dead_code, reason = "the program's own arguments")]
#[path = "../../../cc/noq/examples/send_file.rs"]
mod over_noq;
#[expect(dead_code, reason = "the program's own arguments")]
#[path = "../../../cc/quinn/examples/send_file.rs"]
mod over_quinn;

use lab::testbed::{self, LEFT, RIGHT, Testbed};
use nix::sys::socket::{setsockopt, sockopt::RcvBufForce};
use over_noq::Result;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use testing::{Reason, skip};

/// A link that any machine can fill, of which the queue marks packets and drops none: it holds far more than windows let be in
/// flight.
const LINK: &str = "rate=5mbit delay=10ms queue=10000p codel=5ms:100ms";
/// A socket's buffer, bytes: what waits until a busy machine reads it is not lost.
const BUFFER: usize = 64 << 20;
/// UDP port of the receiver.
const PORT: u16 = 4433;

fn file(bytes: u32) -> Vec<u8> {
    (0..bytes).map(|index| (index.wrapping_mul(2_654_435_761) >> 24) as u8).collect()
}

fn block_on<T>(future: impl Future<Output = Result<T>>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(future).expect("the file is sent")
}

/// Two namespaces with `links` links; none, and a skip, where there is no root.
fn testbed(links: usize) -> Option<Testbed> {
    testbed::possible().map_err(|reason| skip(Reason::Missing, &reason)).ok()?;
    let agent = [env!("CARGO_BIN_EXE_ropewalk-stacks"), "lab-agent"];
    Some(Testbed::pair(&agent, &vec![LINK; links]).expect("root makes it"))
}

fn socket(testbed: &Testbed, host: usize, port: u16) -> UdpSocket {
    let bind = || Ok(UdpSocket::bind((Ipv4Addr::UNSPECIFIED, port))?);
    let socket = testbed.within(host, bind).expect("a socket");
    setsockopt(&socket, RcvBufForce, &BUFFER).expect("root may");
    socket
}

#[test]
fn a_file_arrives_over_loopback_as_it_was_sent() {
    let data = file(3_000_000);
    for algorithm in ["cubic", "vegas", "lia"] {
        let (received, stats) = block_on(over_quinn::loop_back(algorithm, &data));
        assert!(received == data && stats.path.cwnd > 0, "{algorithm}");
    }
    for algorithm in ["lia", "olia", "bbr3"] {
        let (received, paths) = block_on(over_noq::loop_back(algorithm, &data));
        assert!(received == data && paths.len() == 2, "{algorithm}");
        assert!(paths.iter().flatten().all(|path| path.cwnd > 0), "{algorithm}");
    }
}

/// quinn counts a congestion event for a loss or for marks, and nothing is lost.
#[test]
fn marks_of_a_link_between_namespaces_slow_quinn_down() {
    let Some(testbed) = testbed(1) else { return };
    let data = file(3_000_000);
    let transfer = async {
        let (runtime, config) = (Arc::new(quinn::TokioRuntime), quinn::EndpointConfig::default);
        let server_config = over_quinn::server_config()?;
        let server =
            quinn::Endpoint::new(config(), Some(server_config), socket(&testbed, RIGHT, PORT), runtime.clone())?;
        let client = quinn::Endpoint::new(config(), None, socket(&testbed, LEFT, 0), runtime)?;
        let receiving = tokio::spawn(over_quinn::receive(server));
        let address = SocketAddr::from((testbed.v4(0, RIGHT), PORT));
        let stats = over_quinn::send(client, "cubic", address, &data).await?;
        Ok((receiving.await??, stats.path))
    };
    let (received, path) = block_on(transfer);
    assert!(received == data);
    assert!(path.congestion_events > 0 && path.lost_packets == 0, "{path:?}");
}

/// Sends a file in noq over `links` links, and returns what is known of the paths. When half of it has arrived, the link `pulled`
/// carries no more packets.
fn send_in_noq(links: usize, pulled: Option<usize>) -> Option<Vec<Option<noq::PathStats>>> {
    let (mut testbed, data) = (testbed(links)?, file(4_000_000));
    let (server, client) = (socket(&testbed, RIGHT, PORT), socket(&testbed, LEFT, 0));
    let addresses: Vec<_> = (0..links).map(|link| SocketAddr::from((testbed.v4(link, RIGHT), PORT))).collect();
    let (half, mut to_pull) = (data.len() / 2, pulled);
    let on_bytes = move |bytes| {
        if let Some(link) = to_pull.take_if(|_| bytes >= half) {
            testbed.change(link, "both down").expect("an emulated link");
        }
    };
    let transfer = async {
        let (runtime, config) = (Arc::new(noq::TokioRuntime), noq::EndpointConfig::default);
        let server = noq::Endpoint::new(config(), Some(over_noq::server_config()?), server, runtime.clone())?;
        let client = noq::Endpoint::new(config(), None, client, runtime)?;
        let receiving = tokio::spawn(over_noq::receive(server, on_bytes));
        let paths = over_noq::send(client, "lia", &addresses, &data).await?;
        Ok((receiving.await??, paths))
    };
    let (received, paths) = block_on(transfer);
    assert!(received == data);
    Some(paths)
}

/// Over two paths noq declares packets lost that have arrived.
#[test]
fn marks_of_links_between_namespaces_slow_noq_down() {
    for links in [1, 2] {
        let Some(paths) = send_in_noq(links, None) else { return };
        for path in &paths {
            let path = path.as_ref().expect("it carries packets");
            assert!(path.congestion_events > 0 && (links > 1 || path.lost_packets == 0), "{path:?}");
        }
    }
}

#[test]
fn a_file_arrives_in_noq_although_one_of_two_links_is_pulled() {
    for pulled in [0, 1] {
        let Some(paths) = send_in_noq(2, Some(pulled)) else { return };
        let rest = paths[1 - pulled].as_ref().expect("it carries packets");
        assert!(paths[pulled].is_none() && rest.congestion_events > 0, "{rest:?}");
    }
}
