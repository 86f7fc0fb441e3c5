use super::*;

#[derive(Clone, Debug, PartialEq)]
struct TestPacket(u32);

impl Payload for TestPacket {
    fn len(&self) -> u32 {
        1000
    }
    fn slice(&self, _: u32, _: u32) -> Self {
        self.clone()
    }
}

const NONE: [u32; 0] = [];

struct Receiver {
    buffer: ReorderBuffer<TestPacket>,
    counters: EndpointCounters,
}

const CONFIG: ReorderConfig = ReorderConfig {
    in_order: true,
    deliver_late: false,
    timeout: Span::from_millis(100),
    retransmit: true,
    memory_bytes: 1 << 20,
};

fn ms(millis: u64) -> Instant {
    Instant::ZERO + Span::from_millis(millis)
}

impl Receiver {
    fn new(config: ReorderConfig) -> Self {
        Self { buffer: ReorderBuffer::new(config), counters: EndpointCounters::default() }
    }

    /// Receives unfragmented packets with these numbers on a path (path 9: retransmissions); returns the deliveries.
    fn receive(&mut self, now_ms: u64, path: u16, stream: u8, numbers: &[u32]) -> Vec<u32> {
        for &sequence in numbers {
            let (first, last, retransmission) = (true, true, path == 9);
            let fragment = Fragment { stream, sequence, first, last, retransmission, payload: TestPacket(sequence) };
            self.buffer.handle(ms(now_ms), PathId(path), fragment, false, |path| path.0 < 2, &mut self.counters);
            self.buffer.check();
        }
        self.deliveries()
    }

    fn time_out(&mut self, now_ms: u64) -> Vec<u32> {
        self.buffer.on_timeout(ms(now_ms), &mut self.counters);
        self.deliveries()
    }

    fn deliveries(&mut self) -> Vec<u32> {
        std::iter::from_fn(|| self.buffer.pop()).map(|delivery| delivery.payload.0).collect()
    }
}

#[test]
fn each_stream_waits_only_for_its_own_missing_fragment() {
    let mut receiver = Receiver::new(CONFIG);
    assert_eq!(receiver.receive(0, 0, 1, &[0, 2, 3]), [0]);
    assert_eq!(receiver.receive(1, 0, 2, &[0, 1]), [0, 1], "another stream");
    assert_eq!(receiver.receive(2, 0, 1, &[1]), [1, 2, 3]);
    assert_eq!(receiver.buffer.deadline, Instant::NEVER);
}

#[test]
fn a_missing_fragment_is_given_up_after_the_reorder_timeout() {
    let mut receiver = Receiver::new(CONFIG);
    receiver.receive(0, 0, 1, &[0]);
    receiver.receive(10, 0, 1, &[2]);
    receiver.receive(20, 0, 1, &[4]);
    assert_eq!(receiver.buffer.deadline, ms(110));
    assert_eq!(receiver.time_out(109), NONE);
    assert_eq!(receiver.time_out(110), [2], "4 is held for its own time");
    assert_eq!(receiver.buffer.deadline, ms(120));
    assert_eq!(receiver.receive(115, 0, 1, &[3]), [3, 4]);
    assert_eq!((receiver.counters.missing_fragments, receiver.counters.duplicate_fragments), (1, 0));
}

#[test]
fn without_retransmission_a_fragment_overtaken_on_every_path_is_given_up_at_once() {
    let mut receiver = Receiver::new(ReorderConfig { retransmit: false, ..CONFIG });
    assert_eq!(receiver.receive(0, 0, 1, &[0, 2]), [0]);
    assert_eq!(receiver.receive(0, 1, 1, &[1]), [1, 2]);
    assert_eq!(receiver.receive(1, 0, 1, &[4]), NONE, "path 1 may still bring 3");
    assert_eq!(receiver.receive(1, 1, 1, &[5]), [4, 5], "it does not");
    assert_eq!(receiver.counters.missing_fragments, 1);
}

#[test]
fn with_retransmission_an_overtaken_fragment_is_waited_for() {
    let mut receiver = Receiver::new(CONFIG);
    receiver.receive(0, 0, 1, &[0, 2]);
    assert_eq!(receiver.receive(0, 1, 1, &[3]), NONE);
    assert_eq!(receiver.receive(5, 9, 1, &[1]), [1, 2, 3], "retransmitted");
}

#[test]
fn a_late_fragment_is_dropped_or_delivered_once_as_configured_and_a_duplicate_never() {
    for deliver_late in [false, true] {
        let mut receiver = Receiver::new(ReorderConfig { deliver_late, ..CONFIG });
        receiver.receive(0, 0, 1, &[0, 3]);
        assert_eq!(receiver.time_out(100), [3]);
        let late: &[u32] = if deliver_late { &[2] } else { &[] };
        assert_eq!(receiver.receive(101, 0, 1, &[2, 2, 3, 0]), late);
        assert_eq!((receiver.counters.late_fragments, receiver.counters.duplicate_fragments), (1, 3));
    }
}

#[test]
fn a_full_buffer_gives_up_the_head_alone() {
    let mut receiver = Receiver::new(ReorderConfig { memory_bytes: 3 * (1000 + ENTRY_BYTES) + 500, ..CONFIG });
    assert_eq!(receiver.receive(0, 0, 1, &[1, 2, 4]), NONE);
    assert_eq!(receiver.receive(0, 0, 1, &[6]), [1, 2], "3 is still waited for");
    assert_eq!(receiver.receive(0, 0, 1, &[3]), [3, 4]);
}

#[test]
fn an_unordered_stream_delivers_everything_but_duplicates_at_once() {
    let mut receiver = Receiver::new(CONFIG);
    let stream = FIRST_UNORDERED_STREAM;
    assert_eq!(receiver.receive(0, 0, stream, &[0, 3, 2, 3, 2]), [0, 3, 2]);
    assert_eq!(receiver.counters.duplicate_fragments, 2);
    assert_eq!(receiver.time_out(100), NONE);
    assert_eq!(receiver.buffer.deadline, Instant::NEVER, "1 is no longer expected");
    assert_eq!(receiver.receive(101, 0, stream, &[4]), [4]);
}

#[test]
fn sequence_numbers_wrap_at_32_bits() {
    let mut receiver = Receiver::new(CONFIG);
    receiver.buffer.streams.get_or_insert_with(1, Stream::default).expected = (1 << 32) - 2;
    assert_eq!(receiver.receive(0, 0, 1, &[u32::MAX - 1, u32::MAX, 0, 1]), [u32::MAX - 1, u32::MAX, 0, 1]);
}

#[test]
fn a_fragment_far_ahead_is_dropped_while_others_are_held_and_skips_the_gap_when_none_is() {
    let mut receiver = Receiver::new(CONFIG);
    let far = MAX_REORDER_DISTANCE as u32;
    receiver.receive(0, 0, 1, &[1]);
    assert_eq!(receiver.receive(10, 0, 1, &[far]), NONE);
    assert_eq!((receiver.counters.reorder_dropped_fragments, receiver.buffer.buffered), (1, 1));
    assert_eq!(receiver.time_out(100), [1]);
    assert_eq!(receiver.receive(101, 0, 1, &[far + 2, far + 3]), [far + 2, far + 3], "all before is lost");
    assert_eq!(
        (receiver.counters.missing_fragments, receiver.counters.reorder_dropped_fragments),
        (1 + u64::from(far), 1)
    );
    assert_eq!(receiver.receive(102, 0, 1, &[far + 1]), NONE, "it comes too late");
    assert_eq!(receiver.counters.late_fragments, 1);
}

#[test]
fn the_ranges_given_up_that_are_remembered_are_bounded() {
    let mut receiver = Receiver::new(CONFIG);
    for gap in 0..100 {
        let (now_ms, first) = (u64::from(gap) * 1000, gap * 10);
        receiver.receive(now_ms, 0, 1, &[first, first + 9]);
        receiver.time_out(now_ms + 100);
        receiver.receive(now_ms + 200, 0, 1, &[first + 3, first + 6]);
    }
    assert_eq!(receiver.counters.late_fragments, 200, "late ones of the latest ranges are recognised");
    assert!(receiver.buffer.streams[1].skipped_ranges.len() <= MAX_SKIPPED_RANGES);
}
