//! Testbeds and their emulated links, seen with datagrams: what arrives, in which order, and never too early.
//!
//! Sender and receiver are this process, so one clock measures one way.

use nix::sys::socket::{setsockopt, sockopt::RcvBufForce};
use ropewalk_lab::testbed::{self, LEFT, RIGHT, Testbed};
use std::net::{SocketAddr, UdpSocket};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};
use testing::{MINUTE, Reason, eventually, skip};

const AGENT: &str = env!("CARGO_BIN_EXE_ropewalk-lab-agent");
/// IP, UDP and Ethernet headers: what a link's rate counts beside a datagram's bytes.
const HEADERS: usize = 20 + 8 + 14;
/// A datagram as short as this is a mark behind those that count.
const MARK: usize = 2;
/// A socket's buffer, bytes: what waits until we read it is not lost.
const BUFFER: usize = 64 << 20;

/// One at a time: each needs the CPU for its link.
static CPU_LOCK: Mutex<()> = Mutex::new(());

/// A testbed with one link, and a socket on each side of it.
struct TestLink {
    testbed: Testbed,
    left: UdpSocket,
    right: UdpSocket,
    marks: std::cell::Cell<u16>,
    _cpu_lock: MutexGuard<'static, ()>,
}

fn test_link(description: &str) -> Option<TestLink> {
    testbed::possible().map_err(|reason| skip(Reason::Missing, &reason)).ok()?;
    let cpu_lock = CPU_LOCK.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let testbed = Testbed::pair(&[AGENT], &[description]).unwrap();
    let socket = |host| {
        let address = SocketAddr::from((testbed.v4(0, host), 4000));
        let socket = testbed.within(host, || Ok(UdpSocket::bind(address)?)).unwrap();
        setsockopt(&socket, RcvBufForce, &BUFFER).unwrap();
        socket
    };
    let (left, right) = (socket(LEFT), socket(RIGHT));
    left.connect(right.local_addr().unwrap()).unwrap();
    right.connect(left.local_addr().unwrap()).unwrap();
    let link = TestLink { testbed, left, right, marks: std::cell::Cell::new(0), _cpu_lock: cpu_lock };
    link.resolve_addresses();
    Some(link)
}

impl TestLink {
    /// Both sides learn each other's link-layer address.
    fn resolve_addresses(&self) {
        for (from, to) in [(&self.right, &self.left), (&self.left, &self.right)] {
            to.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
            let has_arrived = eventually(|| from.send(b"hello").is_ok() && to.recv(&mut [0; 9]).is_ok());
            assert!(has_arrived, "the link carries nothing");
            to.set_read_timeout(Some(MINUTE)).unwrap();
        }
        self.arrivals();
    }

    /// Sends `count` datagrams of `bytes`, the first byte of which is their number.
    fn send(&self, count: u8, bytes: usize) {
        (0..count).for_each(|number| assert_eq!(self.left.send(&vec![number; bytes]).unwrap(), bytes));
    }

    /// Returns when the link, which is as this change makes it, has read what has been sent: it reads between two
    /// changes.
    fn wait_until_read(&mut self, change: &str) {
        [change; 2].iter().for_each(|change| self.testbed.change(0, change).unwrap());
    }

    /// All that arrives on the right of what has been sent so far: sizes and first bytes. A link keeps the order, so
    /// they are all there when a mark arrives that was sent behind them. The link may lose marks too.
    fn arrivals(&self) -> Vec<(usize, u8)> {
        let mut arrived = Vec::new();
        self.right.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
        let first = self.marks.get();
        let mark_arrived = eventually(|| {
            self.left.send(&self.marks.get().to_le_bytes()).unwrap();
            self.marks.set(self.marks.get() + 1);
            let mut buffer = [0; 2048];
            while let Ok(bytes) = self.right.recv(&mut buffer) {
                match bytes {
                    // Late marks of an earlier call are ignored.
                    MARK if u16::from_le_bytes([buffer[0], buffer[1]]) < first => {}
                    MARK => return true,
                    _ => arrived.push((bytes, buffer[0])),
                }
            }
            false
        });
        assert!(mark_arrived, "no mark arrived");
        self.right.set_read_timeout(Some(MINUTE)).unwrap();
        arrived
    }
}

/// The delay of one datagram, milliseconds.
fn one_way(from: &UdpSocket, to: &UdpSocket) -> f64 {
    let start = Instant::now();
    from.send(&[0; 64]).unwrap();
    while to.recv(&mut [0; 64]).unwrap() != 64 {}
    start.elapsed().as_secs_f64() * 1e3
}

/// A machine can be late, so that what is asked for may come after some tries.
#[test]
fn each_direction_has_its_own_delay() {
    let Some(link) = test_link("delay=20ms / delay=5ms") else { return };
    let forward: Vec<f64> = (0..20).map(|_| one_way(&link.left, &link.right)).collect();
    assert!(forward.iter().all(|delay| *delay >= 20.0), "{forward:?}");
    let mut reverse = Vec::new();
    let was_fast_once = eventually(|| {
        reverse.push(one_way(&link.right, &link.left));
        reverse[reverse.len() - 1] < 20.0
    });
    assert!(was_fast_once && reverse.iter().all(|delay| *delay >= 5.0), "{reverse:?}");
}

#[test]
fn nothing_passes_faster_than_the_rate() {
    for mbit in [10, 100] {
        let Some(link) = test_link(&format!("rate={mbit}mbit queue=1000p")) else { return };
        const BYTES: usize = 1200;
        let start = Instant::now();
        link.send(200, BYTES);
        let arrivals = link.arrivals();
        let rate = (arrivals.len() * (BYTES + HEADERS) * 8) as f64 / start.elapsed().as_secs_f64() / 1e6;
        assert_eq!(arrivals, (0..200).map(|number| (BYTES, number)).collect::<Vec<_>>());
        assert!(rate <= f64::from(mbit), "{rate} Mbit/s, more than {mbit}");
    }
}

#[test]
fn losses_are_within_five_standard_errors_of_their_share() {
    let Some(link) = test_link("loss=5% delay=1ms") else { return };
    let (batches, batch, share) = (40, 100, 0.05);
    let arrived: usize = (0..batches)
        .map(|_| {
            link.send(batch, 100);
            link.arrivals().len()
        })
        .sum();
    let count = f64::from(batches) * f64::from(batch);
    let (lost, expected, error) = (count - arrived as f64, count * share, (count * share * (1.0 - share)).sqrt());
    assert!((lost - expected).abs() < 5.0 * error, "{lost} lost of {count}, expected {expected} +- {error}");
}

/// Each packet's jitter is drawn from all times up to it alike. Here packets are further apart than that, so that none
/// has to wait for the one before. A machine makes packets later, never earlier: quartiles may be above those of the
/// jitter.
#[test]
fn jitter_is_spread_from_nothing_to_all_of_it() {
    let Some(link) = test_link("delay=20ms jitter=8ms") else { return };
    let (count, max_jitter) = (300_u32, 8.0);
    let mut lateness: Vec<f64> = (0..count).map(|_| one_way(&link.left, &link.right) - 20.0).collect();
    lateness.sort_by(f64::total_cmp);
    // That of a share p has the standard error range * sqrt(p (1 - p) / n).
    for share in [0.25, 0.5, 0.75] {
        let quantile = lateness[(f64::from(count) * share) as usize];
        let min = max_jitter * share - 5.0 * max_jitter * (share * (1.0 - share) / f64::from(count)).sqrt();
        assert!(quantile >= min, "{share} are late by {quantile} ms, expected {min} or more");
    }
    assert!(lateness[0] >= 0.0, "earlier than the delay allows");
    assert!(eventually(|| one_way(&link.left, &link.right) - 20.0 < max_jitter / 4.0), "a quarter is that early");
}

/// At 1 kbit/s the first datagram leaves the link after 1.9 s: all others come meanwhile. Then the link may deliver.
#[test]
fn a_full_queue_holds_what_it_may_and_jitter_keeps_the_order() {
    let Some(mut link) = test_link("rate=100mbit queue=20p jitter=30ms delay=1ms") else { return };
    // In a link's first two seconds IPv6 sends some six packets of its own: each would take a place in the queue.
    let disable_ipv6 = || Ok(std::fs::write("/proc/sys/net/ipv6/conf/all/disable_ipv6", "1")?);
    link.testbed.within(LEFT, disable_ipv6).unwrap();
    link.testbed.change(0, "forward rate=1kbit").unwrap();
    link.send(100, 200);
    link.wait_until_read("forward rate=1kbit");
    link.testbed.change(0, "forward rate=100mbit").unwrap();
    let expected: Vec<_> = (0..21).map(|number| (200, number)).collect();
    assert_eq!(link.arrivals(), expected, "one in transmission, 20 waiting, nothing of the rest");
}

#[test]
fn a_link_changes_while_it_runs() {
    let Some(mut link) = test_link("delay=1ms") else { return };
    let passes = |link: &TestLink, bytes: usize| {
        link.send(1, bytes);
        link.arrivals().len() == 1
    };
    assert!(passes(&link, 1400));
    link.testbed.change(0, "forward down").unwrap();
    link.send(5, 100);
    link.wait_until_read("forward down");
    link.testbed.change(0, "forward up mtu=1280b").unwrap();
    assert_eq!(link.arrivals(), []);
    assert!(passes(&link, 1252) && !passes(&link, 1253), "1280 bytes with IP and UDP headers");
    link.testbed.change(0, "both delay=30ms").unwrap();
    let delay = one_way(&link.left, &link.right);
    assert!(delay >= 30.0, "{delay} ms");
    let error = link.testbed.change(0, "forward jitter=1ms").unwrap_err().to_string();
    assert!(error.contains("delay="), "{error}");
}

#[test]
fn a_rate_alone_is_a_token_bucket_and_both_address_families_work() {
    let Some(link) = test_link("rate=50mbit") else { return };
    let qdiscs = link.testbed.run(LEFT, "tc qdisc show dev p0").unwrap();
    assert!(qdiscs.contains("tbf") && qdiscs.contains("rate 50Mbit"), "{qdiscs}");
    let v6 = |host| {
        let address = SocketAddr::from((link.testbed.v6(0, host), 4001));
        link.testbed.within(host, || Ok(UdpSocket::bind(address)?)).unwrap()
    };
    let (left, right) = (v6(LEFT), v6(RIGHT));
    left.send_to(b"six", right.local_addr().unwrap()).unwrap();
    right.set_read_timeout(Some(MINUTE)).unwrap();
    assert_eq!(right.recv(&mut [0; 9]).unwrap(), 3);
}

#[test]
fn nothing_is_left_of_a_testbed_whose_owner_is_killed() {
    if let Err(reason) = testbed::possible() {
        return skip(Reason::Missing, &reason);
    }
    let line = [AGENT, "testbed", "delay=1ms"];
    let mut owner = Command::new(line[0]);
    let mut owner = owner.args(&line[1..]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut description = String::new();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(owner.stdout.as_mut().unwrap()), &mut description)
        .unwrap();
    let description: serde_json::Value = serde_json::from_str(&description).unwrap();
    let namespace = Path::new("/run/netns").join(description["hosts"][0].as_str().unwrap());
    assert!(namespace.exists());
    owner.kill().unwrap();
    owner.wait().unwrap();
    assert!(eventually(|| !namespace.exists()), "{} is still there", namespace.display());
}
