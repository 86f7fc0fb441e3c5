use super::*;
use crate::data_plane::path_config;
use machine::{Arrival, Endpoint, Entropy, Payload, TransmitBody, TunnelOptions};
use serde_json::Value;
use units::PathId;
use wire::frame::Frame;

/// The payload of no packet: the paths are idle.
#[derive(Clone, Debug)]
enum Nothing {}

impl Payload for Nothing {
    fn len(&self) -> u32 {
        match *self {}
    }

    fn slice(&self, _: u32, _: u32) -> Self {
        match *self {}
    }
}

/// An endpoint with one path, whose pings this test answers or does not answer.
struct Path {
    endpoint: Endpoint<Nothing>,
    now: Instant,
    state: PeerState,
}

impl Path {
    fn new() -> Self {
        let config = TunnelOptions::default().endpoint_config(&[1], Entropy::seeded(7)).unwrap();
        let mut endpoint = Endpoint::new(config);
        endpoint.set_path(PathId(0), path_config(1500, "192.0.2.1:4754".parse().unwrap()));
        Self { endpoint, now: Instant(1_000_000_000), state: PeerState::default() }
    }

    /// Lets so many milliseconds pass. An answer takes 20 ms.
    fn run(&mut self, ms: u64, answers: bool) {
        let mut pings: Vec<(Instant, u64)> = Vec::new();
        for _ in 0..ms {
            self.now += Span::from_millis(1);
            self.endpoint.on_timeout(self.now);
            while let Some(transmit) = self.endpoint.poll_transmit(self.now) {
                assert!(matches!(transmit.body, TransmitBody::Control { .. }));
                pings.extend(self.endpoint.control_frames().iter().filter_map(|frame| match frame {
                    Frame::Ping { token } => Some((self.now + Span::from_millis(20), *token)),
                    _ => None,
                }));
            }
            let due = pings.extract_if(.., |(at, _)| *at <= self.now);
            for (number, (_, token)) in due.filter(|_| answers).collect::<Vec<_>>().into_iter().enumerate() {
                let packet_number = self.now.0 / 1000 + number as u64;
                let arrival = Arrival { path: PathId(0), packet_number, ce: false };
                self.endpoint.receive_control(self.now, arrival, &[Frame::Pong { token }]);
            }
        }
    }

    fn peer(&mut self) -> PeerStatus {
        let public_key = seal::PrivateKey::generate(&mut seal::SystemEntropy).public_key();
        let report = PeerReport {
            public_key,
            session: None,
            status: Some(self.endpoint.status()),
            addresses: Vec::new(),
            names: Vec::new(),
            active: None,
            no_session: 0,
            unallowed_source: 0,
            unallowed_sources: Vec::new(),
            incomplete: 0,
            relay: None,
        };
        let paths = vec![PathStatus { name: "eth1".into(), ..PathStatus::default() }];
        let mut peer = PeerStatus { paths, ..PeerStatus::default() };
        ropewalk_peer(&mut self.state, &report, &mut peer, self.now);
        peer
    }
}

/// Demands of each number that it is finite, not negative, and of the size that its unit allows.
fn check(place: &str, value: &Value) {
    match value {
        Value::Object(fields) => fields.iter().for_each(|(key, value)| check(key, value)),
        Value::Array(values) => values.iter().for_each(|value| check(place, value)),
        Value::Number(number) => {
            let number = number.as_f64().unwrap();
            let limit = match place.rsplit('_').next() {
                Some("ratio" | "share") => 1.0,
                Some("ms") if !place.ends_with("unix_ms") => 1e8,
                Some("s" | "bps" | "bytes" | "packets") => 1e12,
                _ => 1e13,
            };
            assert!((0.0..=limit).contains(&number), "{place}: {number}");
        }
        _ => {}
    }
}

#[test]
fn every_number_of_a_path_is_plausible_or_null_in_every_state() {
    let mut path = Path::new();
    let mut states = Vec::new();
    // New, validating, idle, down, up again, and removed; each by itself and after a while.
    for (ms, answers) in
        [(0, false), (2000, false), (15_000, true), (30_000, true), (20_000, false), (15_000, true), (60_000, true)]
    {
        path.run(ms, answers);
        let peer = path.peer();
        check("", &serde_json::to_value(&peer).unwrap());
        let status = TunnelStatus { peers: vec![peer.clone()], ..TunnelStatus::default() };
        let schema = serde_json::to_value(crate::status::schema(false)).unwrap();
        assert_eq!(testing::violations(&schema, &serde_json::to_value(status).unwrap()), Vec::<String>::new());
        let now = &peer.paths[0];
        states.push(now.state);
        let measured = [now.srtt_ms, now.min_rtt_ms, now.probe_rtt_ms, now.loss_ratio];
        if now.state != PathState::Up {
            assert_eq!((measured, now.delivery_rate_bps, now.cwnd_bytes), ([None; 4], None, None), "{now:?}");
        } else {
            assert!(now.srtt_ms.is_some_and(|srtt| (20.0..22.0).contains(&srtt)), "{now:?}");
            assert_eq!(now.loss_ratio, None, "no data was sent: {now:?}");
        }
    }
    use PathState::{Down, Up, Validating};
    assert_eq!(states, [Validating, Validating, Up, Up, Down, Up, Up]);
    path.endpoint.remove_path(path.now, PathId(0));
    let peer = path.peer();
    check("", &serde_json::to_value(&peer).unwrap());
    assert_eq!((peer.paths[0].state, peer.paths[0].srtt_ms), (Down, None), "removed by the peer");
}

#[test]
fn every_number_of_the_example_is_plausible() {
    check("", &serde_json::to_value(TunnelStatus::example()).unwrap());
}
