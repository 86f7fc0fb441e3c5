//! The super-segments that a sender forms for a device which leaves them uncut: their sizes, and their times if it paces.

use crate::tcp_connection::{Options, sender_with};
use control::{Context, Controller, Decision, PathEvent};
use ropewalk_transport::tcp::sender::{Input, Output};
use ropewalk_transport::tcp::{Ack, SackBlocks, SegmentKind, SinglePathSender};
use units::{INFINITE_SSTHRESH, Instant, PathId, Rate, Span};

/// A window and a pacing rate that do not change.
#[derive(Debug)]
struct Fixed(u32, Option<Rate>);

impl Controller for Fixed {
    fn on_event(&mut self, _path: PathId, _event: &PathEvent, _context: &mut Context<'_>) {}

    fn decision(&self, _path: PathId) -> Decision {
        Decision { cwnd: self.0, ssthresh: INFINITE_SSTHRESH, pacing_rate: self.1 }
    }
}

/// The sizes of the super-segments that may leave now, and when to poll again.
fn poll_all(sender: &mut SinglePathSender, now: Instant) -> (Vec<u32>, Instant) {
    let (mut sizes, mut continues) = (Vec::new(), false);
    loop {
        match sender.poll(now) {
            Output::Transmit(segment) if segment.kind == SegmentKind::Data => {
                if !continues {
                    sizes.push(0);
                }
                let size = sizes.last_mut().expect("it has begun");
                *size += 1;
                continues = sender.continues_super_segment(&segment, *size);
            }
            Output::Transmit(_) => {}
            Output::WaitUntil(deadline) => return (sizes, deadline),
        }
    }
}

fn ms(ms: u64) -> Instant {
    Instant::ZERO + Span::from_millis(ms)
}

/// A sender of endless data with 1000 bytes a segment whose connection has opened after a round trip of 20 ms.
fn open(controller: Fixed) -> SinglePathSender {
    let mut sender = sender_with(Options { offload: true, ..Options::default() }, Box::new(controller));
    sender.handle(Instant::ZERO, Input::Write { segments: u64::MAX, lacking: 0 });
    sender.handle(ms(0), Input::Connect);
    poll_all(&mut sender, ms(0));
    let ack = Ack { syn: true, receive_window: 1_000_000, tsval: 1, tsecr: 1, ..Ack::default() };
    sender.handle(ms(20), Input::Ack(&ack));
    sender
}

/// Linux `tcp_tso_autosize`: 2^-10 s of twice the window a round trip, 9765 bytes. And `tcp_cwnd_test`: half a window at
/// most.
#[test]
fn a_super_segment_has_a_millisecond_of_the_rate() {
    let (sizes, _) = poll_all(&mut open(Fixed(100, None)), ms(20));
    assert_eq!(sizes, [9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 1]);
    let (sizes, _) = poll_all(&mut open(Fixed(10, None)), ms(20));
    assert_eq!(sizes, [2; 5], "two segments are the least");
    let (sizes, _) = poll_all(&mut open(Fixed(3, None)), ms(20));
    assert_eq!(sizes, [1; 3], "but half of the window the most");
}

/// Linux `tcp_update_skb_after_send`: the next one leaves when its time at the rate has passed, but for the first ten
/// packets. At 80 Mbit/s 9000 bytes take 0.9 ms.
#[test]
fn paced_super_segments_leave_whole() {
    let mut sender = open(Fixed(100, Some(Rate::from_mbit(80))));
    let mut now = ms(20);
    let mut departures = Vec::new();
    while departures.len() < 5 {
        let (sizes, deadline) = poll_all(&mut sender, now);
        departures.extend(sizes.into_iter().map(|size| (now.since(ms(20)).as_micros(), size)));
        now = deadline;
    }
    assert_eq!(departures, [(0, 9), (0, 9), (900, 9), (1800, 9), (2700, 9)]);
}

/// A retransmission of 1000 bytes takes 0.1 ms at 80 Mbit/s, of which up to half makes up for its lateness. New data leaves then,
/// without a further acknowledgement.
#[test]
fn new_data_after_a_retransmission_waits_for_the_pacer_alone() {
    let mut sender = open(Fixed(100, Some(Rate::from_mbit(80))));
    let mut now = ms(20);
    while now < ms(25) {
        now = poll_all(&mut sender, now).1;
    }
    let mut sack_blocks = SackBlocks::default();
    sack_blocks.push((1, 40));
    let ack = Ack { receive_window: 1_000_000, tsval: 2, tsecr: 20, sack_blocks, ..Ack::default() };
    sender.handle(ms(45), Input::Ack(&ack));
    let (sizes, deadline) = poll_all(&mut sender, ms(45));
    assert_eq!((sizes, deadline.since(ms(45)).as_micros()), (vec![1], 50));
    assert_eq!(poll_all(&mut sender, deadline).0, [9]);
}
