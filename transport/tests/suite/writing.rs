//! An application with idle periods: application-limited samples and idle restarts.

use crate::tcp_connection;
use crate::tcp_connection::{Connection, Options, sender_with};
use control::{Context, Controller, Decision, PathEvent};
use ropewalk_transport::tcp::sender::Input;
use std::sync::{Arc, Mutex};
use units::{INFINITE_SSTHRESH, PathId, Span};

const WINDOW: u32 = 100;

/// A window of 100 packets that records each delivery-rate sample: segments acknowledged, and whether it was
/// application-limited.
#[derive(Debug, Default)]
struct RateSampleRecorder(Arc<Mutex<Vec<(u64, bool)>>>);

impl Controller for RateSampleRecorder {
    fn on_event(&mut self, _path: PathId, event: &PathEvent, _context: &mut Context<'_>) {
        if let PathEvent::Ack(sample) = event
            && let Some(delivery) = sample.rate_sample
        {
            self.0.lock().expect("one thread").push((sample.snd_una, delivery.app_limited));
        }
    }

    fn decision(&self, _path: PathId) -> Decision {
        Decision { cwnd: WINDOW, ssthresh: INFINITE_SSTHRESH, pacing_rate: None }
    }
}

/// Linux asks at each write (`tcp_rate_check_app_limited`): if nothing was left to send and the window had room, what
/// is sent until something of it is acknowledged is marked.
#[test]
fn samples_of_a_flow_that_had_nothing_to_send_are_marked() {
    let recorder = RateSampleRecorder::default();
    let samples = recorder.0.clone();
    let mut connection = Connection::with_segment_filter(Options::default(), |_, _| tcp_connection::pass());
    connection.sender = sender_with(Options::default(), Box::new(recorder));
    for segments in [5, 5, 500] {
        connection.sender.handle(connection.now, Input::Write { segments, last_is_small: false });
        assert!(connection.run(Span::from_secs(10)));
        connection.now += Span::from_millis(100);
    }
    assert_eq!(connection.receiver.delivered(), 510);
    let samples = samples.lock().expect("one thread");
    assert!(samples.iter().filter(|(una, _)| *una <= 10).count() >= 4, "{samples:?}");
    // Of the long write, one window is sent before the first acknowledgement.
    let marked_until = 10 + u64::from(WINDOW);
    for (una, marked) in samples.iter() {
        assert_eq!(*marked, *una <= marked_until, "the sample that acknowledged all below {una}");
    }
}
