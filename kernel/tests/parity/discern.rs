//! Discern as a program, where the controller's events say nothing: what begins an episode, and siblings.

use crate::formulas::SENDING;
use crate::harness::{Answer, Native};
use std::fmt::Write;
use std::sync::OnceLock;

const BASE_MS: u64 = 40;
/// A random number with which politeness begins no test.
const NO_TEST: u64 = 4_000_000_000;

/// The program, built once for all tests here.
fn native() -> Option<&'static Native> {
    static NATIVE: OnceLock<Option<Native>> = OnceLock::new();
    NATIVE.get_or_init(|| Native::of("discern")).as_ref()
}

/// Lines for subflows whose windows have 100 packets, all of them in flight, and a base RTT of 40 ms.
struct Connection {
    lines: Vec<String>,
    now_ms: u64,
}

impl Connection {
    fn established(paths: u64) -> Self {
        let mut connection = Self { lines: Vec::new(), now_ms: 0 };
        connection.wait(1);
        for path in 0..paths {
            connection.event("up", path, &format!("random0 {} {SENDING} snd_cwnd 100", NO_TEST + path));
            (0..8).for_each(|_| connection.ack(path, 0, ""));
        }
        connection
    }

    fn wait(&mut self, millis: u64) {
        self.now_ms += millis;
    }

    fn event(&mut self, name: &str, path: u64, values: &str) {
        let (ms, mut line) = (self.now_ms, format!("{name} {path}"));
        write!(line, " time_ns {ms}000000 mstamp_us {ms}000 {values}").expect("a string takes it");
        self.lines.push(line);
    }

    /// An acknowledgement with a queueing delay, and other values.
    fn ack(&mut self, path: u64, queueing_ms: u64, values: &str) {
        let rtt_us = 1000 * (BASE_MS + queueing_ms);
        let srtt = rtt_us * 8;
        self.event("ack", path, &format!("rtt_us {rtt_us} srtt_eighths {srtt} prior_in_flight 100 {values}"));
    }

    /// A loss while the latest samples have a queueing delay.
    fn loss_with_delay(&mut self, path: u64) {
        (0..4).for_each(|_| self.ack(path, 20, ""));
        self.ack(path, 20, "losses 1");
    }

    /// The answer to the latest line.
    fn answer(&self, native: &Native) -> Answer {
        let lines: Vec<&str> = self.lines.iter().map(String::as_str).collect();
        *native.run(&lines).expect("runs").last().expect("an answer")
    }
}

#[test]
fn a_loss_with_delay_leaves_seven_tenths_once_a_round_trip() {
    let Some(native) = native() else { return };
    let mut connection = Connection::established(1);
    let mut after = |millis| {
        connection.wait(millis);
        connection.loss_with_delay(0);
        connection.answer(native).cwnd
    };
    assert_eq!([0, 30, 29, 10].map(&mut after), [70, 70, 70, 49], "a round trip is 60 ms");
}

#[test]
fn the_state_cwr_is_a_mark_a_probe_that_repaired_a_loss_or_a_drop_of_the_own_interface() {
    let Some(native) = native() else { return };
    let after = |is_in_ack: bool, delivered_ce: u32| {
        let mut connection = Connection::established(1);
        if is_in_ack {
            connection.event("progress", 0, "");
        }
        connection.event("state", 0, "new_state 2");
        connection.ack(0, 0, &format!("delivered_ce {delivered_ce} new_state 2"));
        connection.answer(native).cwnd
    };
    assert_eq!([after(true, 1), after(true, 0), after(false, 0)], [85, 100, 70]);
}

#[test]
fn a_mark_is_not_undone_and_a_loss_is() {
    let Some(native) = native() else { return };
    let after = |has_mark: bool| {
        let mut connection = Connection::established(1);
        connection.event("progress", 0, "");
        connection.event("congestion", 0, "new_state 3 in_flight 99");
        (0..4).for_each(|_| connection.ack(0, 20, "new_state 3"));
        connection.ack(0, 20, "losses 1 new_state 3");
        if has_mark {
            connection.wait(200);
            connection.ack(0, 20, "delivered_ce 1 new_state 3");
        }
        connection.event("undo", 0, "prior_ssthresh 2147483647");
        connection.answer(native).cwnd
    };
    assert_eq!([after(false), after(true)], [100, 59], "0.7 * 0.85 = 0.595");
}

/// RFC 9438, equation 2: from 70 packets CUBIC is at 100 again after cbrt(30 / 0.4) = 4.217 s.
#[test]
fn after_a_loss_the_window_is_back_when_cubic_says() {
    let Some(native) = native() else { return };
    let mut connection = Connection::established(1);
    connection.loss_with_delay(0);
    // As of a path of 200 ms, where the Reno-friendly window is lower.
    let mut cwnd_after = |rounds: u64| {
        for _ in 0..rounds {
            let una = connection.now_ms;
            connection.ack(0, 0, &format!("acked 90 cwnd_limited 1 snd_una {una}"));
            connection.wait(200);
        }
        connection.answer(native).cwnd
    };
    assert!((99..=100).contains(&cwnd_after(4217 / 200)));
    assert!(cwnd_after(15) > 105, "and goes on");
}

/// Windows after a loss with delay on the first of two subflows, whose delays have moved together for 10 s or not.
fn windows_after_a_loss(native: &Native, is_together: bool) -> [u32; 2] {
    let mut connection = Connection::established(2);
    for tick in 0..200u64 {
        connection.wait(50);
        let first = tick * tick % 7;
        let queues = [first, if is_together { first } else { tick % 5 }];
        (0..2).for_each(|path| (0..4).for_each(|_| connection.ack(path, queues[path as usize], "")));
    }
    connection.loss_with_delay(0);
    let first = connection.answer(native).cwnd;
    (0..4).for_each(|_| connection.ack(1, 20, ""));
    [first, connection.answer(native).cwnd]
}

#[test]
fn a_loss_with_delay_reduces_the_siblings_whose_delays_move_together() {
    let Some(native) = native() else { return };
    assert_eq!(windows_after_a_loss(native, true), [70, 70]);
    assert_eq!(windows_after_a_loss(native, false), [70, 100]);
}

#[test]
fn a_reduction_of_a_sibling_is_followed_once() {
    let Some(native) = native() else { return };
    let mut connection = Connection::established(2);
    connection.loss_with_delay(0);
    for _ in 0..20 {
        connection.wait(5);
        connection.ack(1, 20, "");
    }
    assert_eq!(connection.answer(native).cwnd, 70);
}

/// Growth beyond slow start in a second without loss, of one of so many subflows at one bottleneck that have never reduced
/// for a loss: 5 % a round trip for one, an n-th of it for n.
#[test]
fn subflows_at_one_bottleneck_grow_like_one() {
    let Some(native) = native() else { return };
    let grown = |paths: u64| {
        let mut connection = Connection::established(paths);
        // A round with nothing but a queue ends slow start.
        for _ in 0..2 {
            (0..12).for_each(|_| connection.ack(0, 20, ""));
            connection.wait(70);
        }
        connection.ack(0, 20, "");
        let una = |round: u64| format!("acked 100 cwnd_limited 1 snd_una {}", round + 1);
        for round in 0..4 {
            connection.wait(10);
            connection.ack(0, 20, &una(round));
        }
        f64::from(connection.answer(native).cwnd) - 100.0
    };
    // Four acknowledgements of a hundred packets: 100 (1.05^4 - 1), or somewhat less as the packets are always a hundred.
    assert!((19.0..=21.6).contains(&grown(1)), "{}", grown(1));
    assert!((4.0..=5.5).contains(&grown(4)), "{}", grown(4));
}
