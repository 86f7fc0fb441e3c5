use super::*;

/// A parcel of so many bytes; it can be marked.
#[derive(Clone, Debug)]
struct Parcel {
    id: u32,
    bytes: u32,
    capable: bool,
}

impl Payload for Parcel {
    fn len(&self) -> u32 {
        self.bytes
    }
    fn slice(&self, _: u32, _: u32) -> Self {
        self.clone()
    }
    fn signal(&mut self) -> bool {
        self.capable
    }
}

fn ms(n: u64) -> Instant {
    Instant::ZERO + Span::from_millis(n)
}

fn entrance(most_bytes: u64) -> (Entrance<Parcel>, Counters) {
    (Entrance::new(Span::from_millis(5), Span::from_millis(100), most_bytes), Counters::default())
}

#[test]
fn a_flow_that_sends_little_goes_first_and_others_take_turns_by_bytes() {
    let (mut entrance, mut counters) = entrance(1 << 30);
    for id in 0..40 {
        let (stream, bytes) = if id % 2 == 0 { (1, 1514) } else { (2, 757) };
        entrance.push(ms(0), stream, Parcel { id, bytes, capable: false }, &mut counters);
    }
    let mut order: Vec<u8> =
        (0..6).filter_map(|_| entrance.pop(ms(0), &mut counters)).map(|(stream, _)| stream).collect();
    assert_eq!(order, [1, 2, 2, 1, 2, 2]);
    assert!(!entrance.next_is_sparse(1514), "both have a backlog");
    entrance.push(ms(0), 3, Parcel { id: 99, bytes: 84, capable: false }, &mut counters);
    assert!(entrance.next_is_sparse(1514) && !entrance.next_is_sparse(83));
    order = (0..2).filter_map(|_| entrance.pop(ms(0), &mut counters)).map(|(stream, _)| stream).collect();
    assert_eq!(order[0], 3);
}

/// A queue that is emptied at 1 parcel a millisecond and always has 20 waiting: it is signalled first after an interval, then
/// ever more often (RFC 8289: an interval, 100 / sqrt(2), 100 / sqrt(3) ... later).
#[test]
fn a_standing_queue_is_told_so_by_marks_or_losses_in_codels_rhythm() {
    for capable in [true, false] {
        let (mut entrance, mut counters) = entrance(1 << 30);
        let mut times = Vec::new();
        let mut id = 0;
        for at in 0..400 {
            while entrance.parcels() < 20 {
                id += 1;
                entrance.push(ms(at), 7, Parcel { id, bytes: 1514, capable }, &mut counters);
            }
            let before = counters.signalled + counters.dropped;
            entrance.pop(ms(at), &mut counters);
            if counters.signalled + counters.dropped > before {
                times.push(at);
            }
        }
        // The sojourn passes 5 ms at 5 ms; the first signal is an interval later.
        let expected = [105.0, 205.0, 275.7, 333.4, 383.4];
        assert_eq!(times.len(), expected.len(), "{times:?}");
        for (at, expected) in times.iter().zip(expected) {
            assert!((*at as f64 - expected).abs() <= 2.0, "{times:?}");
        }
        assert_eq!(counters.signalled > 0, capable);
        assert_eq!(counters.dropped > 0, !capable);
    }
}

#[test]
fn when_it_is_full_the_fullest_queue_makes_room() {
    let (mut entrance, mut counters) = entrance(10_000);
    (0..9).for_each(|id| entrance.push(ms(0), 1, Parcel { id, bytes: 1000, capable: true }, &mut counters));
    (0..4).for_each(|id| entrance.push(ms(0), 2, Parcel { id, bytes: 1000, capable: true }, &mut counters));
    assert_eq!((entrance.bytes(), counters.dropped), (10_000, 3));
    let first = std::iter::from_fn(|| entrance.pop(ms(0), &mut counters)).find(|(stream, _)| *stream == 1);
    assert_eq!(first.expect("some are left").1.id, 3, "the oldest went");
}
