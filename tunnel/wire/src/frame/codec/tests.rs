use super::super::MOST_RANGES;
use super::*;
use proptest::prelude::*;

fn written(frames: &[Frame]) -> Vec<u8> {
    let mut out = Vec::new();
    for frame in frames {
        let before = out.len();
        frame.write(&mut out);
        assert_eq!(out.len() - before, frame.len());
    }
    out
}

fn read(body: &[u8]) -> Result<Vec<Frame>, Malformed> {
    match Body::parse(body)? {
        Body::Control(frames) => frames.collect(),
        Body::Data(..) => panic!("data"),
    }
}

fn ack(runs: &[(u32, u32)]) -> Ack {
    let mut ranges = Ranges::default();
    for (missing, arrived) in runs {
        assert!(ranges.push(*missing, *arrived));
    }
    Ack { path: 2, largest: 0xffff_fffe, delay_us: 37, arrived_us: 0x0102_0304, marked: 15_293, ranges }
}

#[test]
fn a_piece_has_a_header_of_six_bytes() {
    let header = DataHeader { stream: 9, sequence: 0x0a0b_0c0d, first: true, last: false, again: false, offload: true };
    let mut body = header.to_bytes().to_vec();
    assert_eq!(body, [0x49, 9, 0x0a, 0x0b, 0x0c, 0x0d]);
    body.push(0x45);
    assert!(matches!(Body::parse(&body), Ok(Body::Data(read, [0x45])) if read == header));
    assert_eq!(DataHeader::parse(&body[..5]).unwrap_err(), Malformed::Truncated);
}

#[test]
fn control_frames_stand_as_the_table_says() {
    let frames = [
        Frame::Ack(ack(&[(0, 5), (1, 100)])),
        Frame::Ping { token: 0x0102_0304_0506_0708 },
        Frame::Hold { wait_us: 0x1122_3344 },
        Frame::Path { path: 3, state: PathState::Gone },
        Frame::Close,
    ];
    let bytes = written(&frames);
    let expected = [
        &[1, 2, 0xff, 0xff, 0xff, 0xfe, 1, 2, 3, 4, 0x25, 0x7b, 0xbd, 2, 5, 1, 0x40, 100][..],
        &[2, 1, 2, 3, 4, 5, 6, 7, 8, 4, 0x11, 0x22, 0x33, 0x44, 5, 3, 2, 6],
    ];
    assert_eq!(bytes, expected.concat());
    assert_eq!(read(&bytes).unwrap(), frames);
}

#[test]
fn padding_ends_the_frames() {
    let mut bytes = written(&[Frame::Pong { token: 1 }]);
    bytes.extend_from_slice(&[0, 0xff, 6]);
    assert_eq!(read(&bytes).unwrap(), [Frame::Pong { token: 1 }]);
    assert_eq!(read(&[]).unwrap(), []);
}

#[test]
fn what_no_sender_writes_is_refused() {
    let cut = written(&[Frame::Close, Frame::Ping { token: 1 }]);
    assert_eq!(read(&cut[..9]), Err(Malformed::Truncated));
    for (bytes, reason) in [
        (&[7][..], Malformed::Type),
        (&[0x3f], Malformed::Type),
        (&[5, 0, 3], Malformed::Value),
        (&[1, 0, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0], Malformed::Value), // no run
        (&[1, 0, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 1, 0], Malformed::Value), // a run of nothing
        (&[1, 0, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 1, 0xc0, 0, 0, 0, 0x80, 0, 0, 0], Malformed::Value), // half the space
    ] {
        assert_eq!(read(bytes), Err(reason), "{bytes:?}");
    }
    assert_eq!(Body::parse(&[0x50, 0, 0, 0, 0, 0]).unwrap_err(), Malformed::Type);
}

#[test]
fn an_acknowledgement_of_too_many_runs_is_refused_and_a_full_one_is_not() {
    let mut full = Ranges::default();
    while full.push(1, 1) {}
    let frame = Frame::Ack(Ack { ranges: full, ..ack(&[]) });
    let mut bytes = written(core::slice::from_ref(&frame));
    assert_eq!(read(&bytes).unwrap(), [frame]);
    bytes[13] = MOST_RANGES as u8 + 1;
    bytes.extend_from_slice(&[1, 1]);
    assert_eq!(read(&bytes), Err(Malformed::Value));
}

prop_compose! {
    fn any_ack()(path: u8, largest: u32, delay_us: u32, arrived_us: u32, marked: u32,
                 runs in proptest::collection::vec((1..1000_u32, 1..100_000_u32), 1..=MOST_RANGES)) -> Ack {
        Ack { path, largest, delay_us, arrived_us, marked, ..ack(&runs) }
    }
}

fn any_frame() -> impl Strategy<Value = Frame> {
    let state = prop_oneof![Just(PathState::Regular), Just(PathState::Backup), Just(PathState::Gone)];
    prop_oneof![
        any_ack().prop_map(Frame::Ack),
        any::<u64>().prop_map(|token| Frame::Ping { token }),
        any::<u64>().prop_map(|token| Frame::Pong { token }),
        any::<u32>().prop_map(|wait_us| Frame::Hold { wait_us }),
        (any::<u8>(), state).prop_map(|(path, state)| Frame::Path { path, state }),
        Just(Frame::Close),
    ]
}

proptest! {
    #[test]
    fn what_is_written_is_read(frames in proptest::collection::vec(any_frame(), 0..8), padding in 0..3_usize) {
        let mut bytes = written(&frames);
        bytes.resize(bytes.len() + padding, 0);
        prop_assert_eq!(read(&bytes).unwrap(), frames);
    }

    #[test]
    fn data_is_read_as_written(stream: u8, sequence: u32, bits in 0..16_u8, piece: Vec<u8>) {
        let [first, last, again, offload] = [1, 2, 4, 8].map(|bit| bits & bit != 0);
        let header = DataHeader { stream, sequence, first, last, again, offload };
        let body = [&header.to_bytes()[..], &piece].concat();
        prop_assert_eq!(DataHeader::parse(&body), Ok((header, &piece[..])));
    }
}
