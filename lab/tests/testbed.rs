//! Test beds and their emulated links, measured with datagrams.
//!
//! Sender and receiver are this process, so one clock measures one way. Where there are no namespaces the tests say
//! so and pass.

use ropewalk_lab::testbed::{self, LEFT, RIGHT, Testbed};
use std::net::{SocketAddr, UdpSocket};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

const AGENT: &str = env!("CARGO_BIN_EXE_ropewalk-lab-agent");
/// IP, UDP and Ethernet headers: what a link's rate counts beside a datagram's bytes.
const HEADERS: usize = 20 + 8 + 14;

/// One at a time: they measure time.
static TURN: Mutex<()> = Mutex::new(());

/// A testbed with one link, and a socket on each side of it.
struct Ends {
    testbed: Testbed,
    left: UdpSocket,
    right: UdpSocket,
    _turn: MutexGuard<'static, ()>,
}

fn ends(link: &str) -> Option<Ends> {
    if let Err(why) = testbed::possible() {
        eprintln!("skipped: {why}");
        return None;
    }
    let turn = TURN.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let testbed = Testbed::pair(&[AGENT], &[link]).unwrap();
    let socket = |host| {
        let address = SocketAddr::from((testbed.v4(0, host), 4000));
        testbed.within(host, || Ok(UdpSocket::bind(address)?)).unwrap()
    };
    let (left, right) = (socket(LEFT), socket(RIGHT));
    left.connect(right.local_addr().unwrap()).unwrap();
    right.connect(left.local_addr().unwrap()).unwrap();
    let ends = Ends { testbed, left, right, _turn: turn };
    ends.introduce();
    Some(ends)
}

impl Ends {
    /// Both sides learn each other's link-layer address.
    fn introduce(&self) {
        for (from, to) in [(&self.left, &self.right), (&self.right, &self.left)] {
            to.set_read_timeout(Some(Duration::from_millis(1500))).unwrap();
            let heard = (0..20).any(|_| from.send(b"hello").is_ok() && to.recv(&mut [0; 9]).is_ok());
            assert!(heard, "the link carries nothing");
        }
        std::thread::sleep(Duration::from_millis(300));
        self.arrivals();
    }

    /// What arrives on the right until it is quiet for 150 ms: sizes and instants.
    fn arrivals(&self) -> Vec<(usize, Instant)> {
        self.right.set_read_timeout(Some(Duration::from_millis(150))).unwrap();
        let mut room = [0; 2048];
        std::iter::from_fn(|| self.right.recv(&mut room).ok().map(|bytes| (bytes, Instant::now()))).collect()
    }
}

/// Median one-way times of 40 datagrams, ms.
fn delay_ms(from: &UdpSocket, to: &UdpSocket) -> f64 {
    to.set_read_timeout(Some(Duration::from_secs(1))).unwrap();
    let one_way = |_| {
        let start = Instant::now();
        from.send(&[0; 64]).unwrap();
        to.recv(&mut [0; 64]).unwrap();
        start.elapsed().as_secs_f64() * 1e3
    };
    let mut times: Vec<f64> = (0..40).map(one_way).collect();
    times.sort_by(f64::total_cmp);
    times[20]
}

#[test]
fn delays_are_right_to_a_millisecond_in_each_direction() {
    let Some(ends) = ends("delay=20ms / delay=5ms") else { return };
    let (there, back) = (delay_ms(&ends.left, &ends.right), delay_ms(&ends.right, &ends.left));
    assert!((20.0..21.0).contains(&there) && (5.0..6.0).contains(&back), "{there} ms there, {back} ms back");
}

#[test]
fn rates_are_right_to_two_percent() {
    for mbit in [10, 100] {
        let Some(ends) = ends(&format!("rate={mbit}mbit delay=1ms queue=1000p")) else { return };
        const BYTES: usize = 1200;
        let packets = 50 * mbit;
        let sender = ends.left.try_clone().unwrap();
        let sending = std::thread::spawn(move || {
            let (start, gap) = (Instant::now(), Duration::from_micros(9_000 / mbit as u64));
            for number in 0..packets {
                std::thread::sleep((start + gap * number).saturating_duration_since(Instant::now()));
                sender.send(&[0; BYTES]).unwrap();
            }
        });
        let arrivals = ends.arrivals();
        sending.join().unwrap();
        let time = (arrivals[arrivals.len() - 1].1 - arrivals[0].1).as_secs_f64();
        let rate = ((arrivals.len() - 1) * (BYTES + HEADERS) * 8) as f64 / time / 1e6;
        assert_eq!(arrivals.len(), packets as usize, "the queue has room for all that wait");
        assert!((rate / f64::from(mbit) - 1.0).abs() < 0.02, "{rate} Mbit/s, not {mbit}");
    }
}

#[test]
fn losses_are_within_five_standard_errors_of_their_share() {
    let Some(ends) = ends("loss=5% delay=1ms") else { return };
    let (count, share) = (4_000, 0.05);
    let mut arrived = 0;
    for _ in 0..count / 50 {
        (0..50).for_each(|_| assert_eq!(ends.left.send(&[0; 100]).unwrap(), 100));
        ends.right.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
        arrived += std::iter::from_fn(|| ends.right.recv(&mut [0; 100]).ok()).count();
    }
    let (lost, expected) = (f64::from(count) - arrived as f64, f64::from(count) * share);
    let error = (f64::from(count) * share * (1.0 - share)).sqrt();
    assert!((lost - expected).abs() < 5.0 * error, "{lost} lost of {count}, expected {expected} +- {error}");
}

/// Each packet's jitter is drawn from all times up to it alike. Here packets are further apart than that, so that none has
/// to wait for the one before.
#[test]
fn jitter_is_uniform_within_five_standard_errors() {
    let Some(ends) = ends("delay=20ms jitter=8ms") else { return };
    let (count, most) = (300_u32, 8.0);
    let one_way = |_| {
        let start = Instant::now();
        ends.left.send(&[0; 64]).unwrap();
        ends.right.recv(&mut [0; 64]).unwrap();
        let late = start.elapsed().as_secs_f64() * 1e3 - 20.0;
        std::thread::sleep(Duration::from_millis(1));
        late
    };
    ends.right.set_read_timeout(Some(Duration::from_secs(1))).unwrap();
    let mut late: Vec<f64> = (0..count).map(one_way).collect();
    late.sort_by(f64::total_cmp);
    // Quartiles, because whoever takes the CPU for a moment makes single packets late by more than any jitter. That of a
    // share p has the standard error range * sqrt(p (1 - p) / n). Each way the link looks every 0.26 ms at most for what has
    // come, and again for what is due.
    for share in [0.25, 0.5, 0.75] {
        let quantile = late[(f64::from(count) * share) as usize];
        let (expected, error) = (most * share, most * (share * (1.0 - share) / f64::from(count)).sqrt());
        let bounds = expected - 5.0 * error..expected + 5.0 * error + 0.52;
        assert!(bounds.contains(&quantile), "{share} are late by {quantile} ms, expected {bounds:?}");
    }
    assert!(late.iter().all(|it| *it >= 0.0), "earlier than light");
}

#[test]
fn a_full_queue_holds_what_it_may_and_jitter_keeps_the_order() {
    let Some(ends) = ends("rate=2mbit queue=20p jitter=30ms delay=1ms") else { return };
    (0..100_u8).for_each(|number| assert_eq!(ends.left.send(&[number; 1000]).unwrap(), 1000));
    let mut room = [0; 2048];
    ends.right.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
    let numbers: Vec<u8> = std::iter::from_fn(|| ends.right.recv(&mut room).ok().map(|_| room[0])).collect();
    assert_eq!(numbers, (0..21).collect::<Vec<u8>>(), "one in transmission, 20 waiting, nothing of the rest");
}

#[test]
fn a_link_changes_while_it_runs() {
    let Some(mut ends) = ends("delay=1ms") else { return };
    let passes = |ends: &Ends, bytes: usize| {
        ends.left.send(&vec![0; bytes]).unwrap();
        ends.arrivals().len() == 1
    };
    assert!(passes(&ends, 1400));
    ends.testbed.change(0, "forward down").unwrap();
    assert!(!passes(&ends, 100));
    ends.testbed.change(0, "forward up mtu=1280b").unwrap();
    assert!(passes(&ends, 1252) && !passes(&ends, 1253), "1280 bytes with IP and UDP headers");
    ends.testbed.change(0, "both delay=30ms").unwrap();
    let delay = delay_ms(&ends.left, &ends.right);
    assert!((30.0..31.0).contains(&delay), "{delay} ms");
    let refused = ends.testbed.change(0, "forward jitter=1ms").unwrap_err().to_string();
    assert!(refused.contains("delay="), "{refused}");
}

#[test]
fn a_rate_alone_is_a_token_bucket_and_both_address_families_work() {
    let Some(ends) = ends("rate=50mbit") else { return };
    let shown = ends.testbed.run(LEFT, "tc qdisc show dev p0").unwrap();
    assert!(shown.contains("tbf") && shown.contains("rate 50Mbit"), "{shown}");
    let v6 = |host| {
        let address = SocketAddr::from((ends.testbed.v6(0, host), 4001));
        ends.testbed.within(host, || Ok(UdpSocket::bind(address)?)).unwrap()
    };
    let (left, right) = (v6(LEFT), v6(RIGHT));
    left.send_to(b"six", right.local_addr().unwrap()).unwrap();
    right.set_read_timeout(Some(Duration::from_secs(2))).unwrap();
    assert_eq!(right.recv(&mut [0; 9]).unwrap(), 3);
}

#[test]
fn nothing_is_left_of_a_bed_whose_owner_is_killed() {
    if let Err(why) = testbed::possible() {
        return eprintln!("skipped: {why}");
    }
    let line = [AGENT, "testbed", "delay=1ms"];
    let mut owner = Command::new(line[0]);
    let mut owner = owner.args(&line[1..]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut said = String::new();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(owner.stdout.as_mut().unwrap()), &mut said).unwrap();
    let said: serde_json::Value = serde_json::from_str(&said).unwrap();
    let namespace = Path::new("/run/netns").join(said["hosts"][0].as_str().unwrap());
    assert!(namespace.exists());
    owner.kill().unwrap();
    owner.wait().unwrap();
    let start = Instant::now();
    while namespace.exists() {
        assert!(start.elapsed() < Duration::from_secs(10), "{} is still there", namespace.display());
        std::thread::sleep(Duration::from_millis(20));
    }
}
