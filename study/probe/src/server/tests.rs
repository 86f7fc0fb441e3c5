use super::*;

fn server(limits: Limits) -> Server {
    Server {
        token: Token::new("0123456789abcdef").unwrap(),
        limits,
        name: "here".into(),
        sessions: Mutex::default(),
        connections: AtomicUsize::new(0),
        start: Instant::now(),
    }
}

fn request(session: u64, flow: u32, bytes: u64) -> FlowRequest {
    FlowRequest { session, flow, direction: Direction::Up, millis: 1000, bytes, congestion: "cubic".into() }
}

#[test]
fn sessions_are_bounded_in_all_and_for_an_address() {
    let server = server(Limits::default());
    let address = |host: u8| IpAddr::from([192, 0, 2, host]);
    server.open(1, address(1)).unwrap();
    assert!(server.open(2, address(1)).is_err(), "one of an address");
    (2..5).for_each(|host| server.open(host.into(), address(host)).unwrap());
    assert!(server.open(9, address(9)).is_err(), "four in all");
    server.sessions().remove(&1);
    server.open(9, address(9)).unwrap();
}

#[test]
fn flows_are_bounded_in_number_time_and_bytes_and_give_back_what_they_did_not_use() {
    let server = server(Limits { bytes: 1000, ..Limits::default() });
    server.open(1, [192, 0, 2, 1].into()).unwrap();
    assert!(server.admit(&request(2, 0, 1)).is_err(), "no such session");
    for millis in [0, 60_001, u64::MAX] {
        assert!(server.admit(&FlowRequest { millis, ..request(1, 0, 1) }).is_err(), "{millis} ms");
    }
    assert!(server.admit(&request(1, 0, 1001)).is_err());
    let bounds = server.admit(&request(1, 0, 1000)).unwrap();
    assert!(server.admit(&request(1, 1, 1)).is_err(), "all bytes are taken");
    server.end_flow(&request(1, 0, 1000), bounds, None, 600);
    let flows: Vec<_> = (0..16).map(|flow| server.admit(&request(1, flow, 10)).unwrap()).collect();
    assert_eq!(server.admit(&request(1, 16, 10)).unwrap_err(), "too many flows");
    flows.iter().zip(0..).for_each(|(bounds, flow)| server.end_flow(&request(1, flow, 10), *bounds, None, 0));
    assert!(server.admit(&request(1, 17, 441)).is_err() && server.admit(&request(1, 17, 440)).is_ok());
}

#[test]
fn a_datagram_is_returned_once_to_who_has_the_key_and_an_answer_never() {
    let server = server(Limits::default());
    server.open(7, [192, 0, 2, 1].into()).unwrap();
    let key = server.token.for_session(7);
    let bytes = |key: &Token, datagram: Datagram| {
        let mut bytes = [0; 64];
        datagram.write(key, &mut bytes);
        bytes
    };
    let first = Datagram { session: 7, stream: 1, number: 4, sent_ns: 9, ..Datagram::default() };
    assert!(server.take(&bytes(&server.token, first), 1).is_none(), "the key of the session");
    let (_, answer) = server.take(&bytes(&key, first), 50).unwrap();
    assert_eq!(answer, Datagram { place: 0, returned_ns: 50, ..first });
    assert!(server.take(&bytes(&key, first), 51).is_none(), "replayed");
    assert!(server.take(&bytes(&key, answer), 52).is_none(), "an answer would travel for ever");
    assert!(server.take(&bytes(&key, Datagram { number: datagram::MAX_COUNT, ..first }), 53).is_none());
    let (_, second) = server.take(&bytes(&key, Datagram { number: 2, ..first }), 60).unwrap();
    assert_eq!(second.place, 1);
    let arrivals = server.sessions()[&7].streams[&1].clone();
    assert_eq!((arrivals.datagrams, arrivals.duplicates), (vec![(4, 50), (2, 60)], 1));
}

#[test]
fn any_bytes_are_no_datagram() {
    let server = server(Limits::default());
    server.open(0, [192, 0, 2, 1].into()).unwrap();
    for length in 0..200 {
        assert!(server.take(&vec![0; length], 1).is_none(), "{length} bytes");
    }
}
