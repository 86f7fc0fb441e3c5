use super::super::MAX_ACK_RANGES;
use super::*;
use proptest::prelude::*;

fn encode(frames: &[Frame]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for frame in frames {
        let start = bytes.len();
        frame.write(&mut bytes);
        assert_eq!(bytes.len() - start, frame.len());
    }
    bytes
}

fn decode(body: &[u8]) -> Result<Vec<Frame>, Malformed> {
    match Body::parse(body)? {
        Body::Control(frames) => frames.collect(),
        Body::Data(..) | Body::Bundle(_) => panic!("data"),
    }
}

fn ack(lengths: &[(u32, u32)]) -> Ack {
    let mut ranges = AckRanges::default();
    for (gap, length) in lengths {
        assert!(ranges.push(*gap, *length));
    }
    Ack { path: 2, largest: 0xffff_fffe, ack_delay_us: 37, receive_timestamp_us: 0x0102_0304, ce_count: 15_293, ranges }
}

#[test]
fn the_data_header_has_six_bytes() {
    let header =
        DataHeader { stream: 9, sequence: 0x0a0b_0c0d, first: true, last: false, retransmission: false, offload: true };
    let mut body = header.to_bytes().to_vec();
    assert_eq!(body, [0x49, 9, 0x0a, 0x0b, 0x0c, 0x0d]);
    body.push(0x45);
    assert!(matches!(Body::parse(&body), Ok(Body::Data(decoded, [0x45])) if decoded == header));
    assert_eq!(DataHeader::parse(&body[..5]).unwrap_err(), Malformed::Truncated);
}

#[test]
fn control_frames_are_encoded_as_documented() {
    let frames = [
        Frame::Ack(ack(&[(0, 5), (1, 100)])),
        Frame::Ping { token: 0x0102_0304_0506_0708 },
        Frame::ReorderTimeout { micros: 0x1122_3344 },
        Frame::Path { path: 3, state: PathState::Removed },
        Frame::Path { path: 3, state: PathState::Secondary },
        Frame::Path { path: 3, state: PathState::Metered },
        Frame::Close,
        Frame::PathName { path: 3, name: PathName::nearest_to("eth1").unwrap() },
    ];
    let bytes = encode(&frames);
    let expected = [
        &[1, 2, 0xff, 0xff, 0xff, 0xfe, 1, 2, 3, 4, 0x25, 0x7b, 0xbd, 2, 5, 1, 0x40, 100][..],
        &[
            2, 1, 2, 3, 4, 5, 6, 7, 8, 4, 0x11, 0x22, 0x33, 0x44, 5, 3, 2, 5, 3, 3, 5, 3, 4, 6, 7, 3, 4, 101, 116, 104,
            49,
        ],
    ];
    assert_eq!(bytes, expected.concat());
    assert_eq!(decode(&bytes).unwrap(), frames);
}

#[test]
fn padding_ends_the_frames() {
    let mut bytes = encode(&[Frame::Pong { token: 1 }]);
    bytes.extend_from_slice(&[0, 0xff, 6]);
    assert_eq!(decode(&bytes).unwrap(), [Frame::Pong { token: 1 }]);
    assert_eq!(decode(&[]).unwrap(), []);
}

#[test]
fn malformed_frames_are_rejected() {
    let encoded = encode(&[Frame::Close, Frame::Ping { token: 1 }]);
    assert_eq!(decode(&encoded[..9]), Err(Malformed::Truncated));
    for (bytes, reason) in [
        (&[8][..], Malformed::Type),
        (&[7, 0, 0], Malformed::Value),
        (&[7, 0, 33], Malformed::Value),
        (&[7, 0, 2, b'a'], Malformed::Truncated),
        (&[7, 0, 2, b'a', b'<'], Malformed::Value),
        (&[0x3f], Malformed::Type),
        (&[5, 0, 5], Malformed::Value),
        (&[1, 0, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0], Malformed::Value), // no range
        (&[1, 0, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 1, 0], Malformed::Value), // an empty range
        (&[1, 0, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 1, 0xc0, 0, 0, 0, 0x80, 0, 0, 0], Malformed::Value), // half the space
    ] {
        assert_eq!(decode(bytes), Err(reason), "{bytes:?}");
    }
    assert_eq!(Body::parse(&[0x51, 0, 0, 0, 0, 0]).unwrap_err(), Malformed::Type);
}

#[test]
fn an_ack_of_too_many_ranges_is_rejected_and_a_full_one_is_not() {
    let mut full = AckRanges::default();
    while full.push(1, 1) {}
    let frame = Frame::Ack(Ack { ranges: full, ..ack(&[]) });
    let mut bytes = encode(core::slice::from_ref(&frame));
    assert_eq!(decode(&bytes).unwrap(), [frame]);
    bytes[13] = MAX_ACK_RANGES as u8 + 1;
    bytes.extend_from_slice(&[1, 1]);
    assert_eq!(decode(&bytes), Err(Malformed::Value));
}

prop_compose! {
    fn any_ack()(path: u8, largest: u32, ack_delay_us: u32, receive_timestamp_us: u32, ce_count: u32,
                 lengths in proptest::collection::vec((1..1000_u32, 1..100_000_u32), 1..=MAX_ACK_RANGES)) -> Ack {
        Ack { path, largest, ack_delay_us, receive_timestamp_us, ce_count, ..ack(&lengths) }
    }
}

fn any_frame() -> impl Strategy<Value = Frame> {
    let state = prop_oneof![
        Just(PathState::Regular),
        Just(PathState::Backup),
        Just(PathState::Removed),
        Just(PathState::Secondary),
        Just(PathState::Metered)
    ];
    prop_oneof![
        any_ack().prop_map(Frame::Ack),
        any::<u64>().prop_map(|token| Frame::Ping { token }),
        any::<u64>().prop_map(|token| Frame::Pong { token }),
        any::<u32>().prop_map(|micros| Frame::ReorderTimeout { micros }),
        (any::<u8>(), state).prop_map(|(path, state)| Frame::Path { path, state }),
        Just(Frame::Close),
    ]
}

proptest! {
    #[test]
    fn encoded_frames_are_decoded(frames in proptest::collection::vec(any_frame(), 0..8), padding in 0..3_usize) {
        let mut bytes = encode(&frames);
        bytes.resize(bytes.len() + padding, 0);
        prop_assert_eq!(decode(&bytes).unwrap(), frames);
    }

    #[test]
    fn an_encoded_data_header_is_decoded(stream: u8, sequence: u32, bits in 0..16_u8, fragment: Vec<u8>) {
        let [first, last, retransmission, offload] = [1, 2, 4, 8].map(|bit| bits & bit != 0);
        let header = DataHeader { stream, sequence, first, last, retransmission, offload };
        let body = [&header.to_bytes()[..], &fragment].concat();
        prop_assert_eq!(DataHeader::parse(&body), Ok((header, &fragment[..])));
    }
}
