use super::*;

#[derive(Clone, Debug, PartialEq)]
struct Piece(u32);

impl Payload for Piece {
    fn len(&self) -> u32 {
        1000
    }
    fn slice(&self, _: u32, _: u32) -> Self {
        self.clone()
    }
}

const NONE: [u32; 0] = [];

struct Bench {
    exit: Exit<Piece>,
    counters: Counters,
}

const RULES: Rules =
    Rules { order: true, deliver_late: false, hold: Span::from_millis(100), repair: true, memory: 1 << 20 };

fn ms(n: u64) -> Instant {
    Instant::ZERO + Span::from_millis(n)
}

impl Bench {
    fn new(rules: Rules) -> Self {
        Self { exit: Exit::new(rules), counters: Counters::default() }
    }

    /// Whole parcels with these numbers arrive by a path; what goes up.
    fn take(&mut self, at: u64, path: u16, stream: u8, numbers: &[u32]) -> Vec<u32> {
        for &sequence in numbers {
            let (first, last, again) = (true, true, path == 9);
            let data = Data { stream, sequence, first, last, again, payload: Piece(sequence) };
            self.exit.handle(ms(at), PathId(path), data, false, |path| path.0 < 2, &mut self.counters);
        }
        self.up()
    }

    fn wait(&mut self, until: u64) -> Vec<u32> {
        self.exit.on_timeout(ms(until), &mut self.counters);
        self.up()
    }

    fn up(&mut self) -> Vec<u32> {
        std::iter::from_fn(|| self.exit.pop()).map(|delivery| delivery.payload.0).collect()
    }
}

#[test]
fn each_stream_waits_for_its_own_missing_piece_only() {
    let mut bench = Bench::new(RULES);
    assert_eq!(bench.take(0, 0, 1, &[0, 2, 3]), [0]);
    assert_eq!(bench.take(1, 0, 2, &[0, 1]), [0, 1], "another stream");
    assert_eq!(bench.take(2, 0, 1, &[1]), [1, 2, 3]);
    assert_eq!(bench.exit.deadline(), Instant::NEVER);
}

#[test]
fn a_missing_piece_is_waited_for_as_long_as_the_sender_said() {
    let mut bench = Bench::new(RULES);
    bench.take(0, 0, 1, &[0]);
    bench.take(10, 0, 1, &[2]);
    bench.take(20, 0, 1, &[4]);
    assert_eq!(bench.exit.deadline(), ms(110));
    assert_eq!(bench.wait(109), NONE);
    assert_eq!(bench.wait(110), [2], "4 is held for its own time");
    assert_eq!(bench.exit.deadline(), ms(120));
    assert_eq!(bench.take(115, 0, 1, &[3]), [3, 4]);
    assert_eq!((bench.counters.missed, bench.counters.duplicates), (1, 0));
}

#[test]
fn without_repair_a_piece_that_every_path_has_passed_is_given_up_at_once() {
    let mut bench = Bench::new(Rules { repair: false, ..RULES });
    assert_eq!(bench.take(0, 0, 1, &[0, 2]), [0]);
    assert_eq!(bench.take(0, 1, 1, &[1]), [1, 2]);
    assert_eq!(bench.take(1, 0, 1, &[4]), NONE, "path 1 may still bring 3");
    assert_eq!(bench.take(1, 1, 1, &[5]), [4, 5], "it does not");
    assert_eq!(bench.counters.missed, 1);
}

#[test]
fn with_repair_the_same_piece_is_waited_for() {
    let mut bench = Bench::new(RULES);
    bench.take(0, 0, 1, &[0, 2]);
    assert_eq!(bench.take(0, 1, 1, &[3]), NONE);
    assert_eq!(bench.take(5, 9, 1, &[1]), [1, 2, 3], "it was sent again");
}

#[test]
fn what_comes_late_is_dropped_or_delivered_once_by_choice_and_a_copy_never() {
    for deliver_late in [false, true] {
        let mut bench = Bench::new(Rules { deliver_late, ..RULES });
        bench.take(0, 0, 1, &[0, 3]);
        assert_eq!(bench.wait(100), [3]);
        let late: &[u32] = if deliver_late { &[2] } else { &[] };
        assert_eq!(bench.take(101, 0, 1, &[2, 2, 3, 0]), late);
        assert_eq!((bench.counters.late, bench.counters.duplicates), (1, 3));
    }
}

#[test]
fn too_much_held_gives_up_the_head_alone() {
    let mut bench = Bench::new(Rules { memory: 3500, ..RULES });
    assert_eq!(bench.take(0, 0, 1, &[1, 2, 4]), NONE);
    assert_eq!(bench.take(0, 0, 1, &[6]), [1, 2], "3 is still waited for");
    assert_eq!(bench.take(0, 0, 1, &[3]), [3, 4]);
}

#[test]
fn an_unordered_stream_lets_all_pass_and_copies_not() {
    let mut bench = Bench::new(RULES);
    let stream = FIRST_UNORDERED;
    assert_eq!(bench.take(0, 0, stream, &[0, 3, 2, 3, 2]), [0, 3, 2]);
    assert_eq!(bench.counters.duplicates, 2);
    assert_eq!(bench.wait(100), NONE);
    assert_eq!(bench.exit.deadline(), Instant::NEVER, "1 is no longer expected");
    assert_eq!(bench.take(101, 0, stream, &[4]), [4]);
}

#[test]
fn numbers_go_on_past_their_32_bits() {
    let mut bench = Bench::new(RULES);
    bench.exit.streams[1].expected = (1 << 32) - 2;
    assert_eq!(bench.take(0, 0, 1, &[u32::MAX - 1, u32::MAX, 0, 1]), [u32::MAX - 1, u32::MAX, 0, 1]);
}

#[test]
fn a_number_far_ahead_is_refused_while_others_are_held_and_then_the_stream_goes_on_there() {
    let mut bench = Bench::new(RULES);
    let far = MOST_AHEAD as u32;
    bench.take(0, 0, 1, &[1]);
    assert_eq!(bench.take(10, 0, 1, &[far]), NONE);
    assert_eq!((bench.counters.refused, bench.exit.held()), (1, 1));
    assert_eq!(bench.wait(100), [1]);
    assert_eq!(bench.take(101, 0, 1, &[far + 2, far + 3]), [far + 2, far + 3], "all before is lost");
    assert_eq!((bench.counters.missed, bench.counters.refused), (1 + u64::from(far), 1));
    assert_eq!(bench.take(102, 0, 1, &[far + 1]), NONE, "it comes too late");
    assert_eq!(bench.counters.late, 1);
}

#[test]
fn no_more_gaps_are_remembered_than_a_few_however_late_their_pieces_come() {
    let mut bench = Bench::new(RULES);
    for gap in 0..100 {
        let (at, first) = (u64::from(gap) * 1000, gap * 10);
        bench.take(at, 0, 1, &[first, first + 9]);
        bench.wait(at + 100);
        bench.take(at + 200, 0, 1, &[first + 3, first + 6]);
    }
    assert_eq!(bench.counters.late, 200, "the latest gaps are");
    assert!(bench.exit.streams[1].skipped.len() <= REMEMBERED);
}
