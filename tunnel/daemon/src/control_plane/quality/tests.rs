use super::*;

/// A tunnel with one path, in virtual seconds.
struct Link {
    watch: QualityWatch,
    status: TunnelStatus,
    events: Vec<(f64, EventKind)>,
}

impl Link {
    fn new() -> Self {
        let mut status = TunnelStatus::example();
        status.peers[0].paths.truncate(1);
        let path = &mut status.peers[0].paths[0];
        (path.sent, path.lost_packets) = Default::default();
        status.uptime_s = 0.0;
        Self { watch: QualityWatch::default(), status, events: Vec::new() }
    }

    /// So many seconds with this rate, loss and round trip. Packets wait if `full`.
    fn run(&mut self, seconds: usize, full: bool, mbit: f64, loss: f64, rtt_ms: f64) {
        for _ in 0..seconds {
            self.status.uptime_s += 1.0;
            let peer = &mut self.status.peers[0];
            peer.ingress_queue.backlog_packets = full.into();
            let path = &mut peer.paths[0];
            path.sent.bytes += (mbit * 125_000.0) as u64;
            let packets = (mbit * 100.0) as u64;
            path.sent.packets += packets;
            path.lost_packets += (packets as f64 * loss) as u64;
            (path.probe_rtt_ms, path.in_flight_bytes, path.send_rate_bps) = (Some(rtt_ms), 0, (mbit * 1e6) as u64);
            self.tick();
        }
    }

    fn tick(&mut self) {
        let events = self.watch.update(&self.status);
        self.events.extend(events.into_iter().map(|event| (self.status.uptime_s, event.kind)));
    }

    /// Down for three seconds.
    fn flap(&mut self) {
        for state in [PathState::Down, PathState::Up] {
            let path = &mut self.status.peers[0].paths[0];
            path.state = state;
            path.failures += u64::from(state == PathState::Down);
            self.status.uptime_s += 3.0;
            self.tick();
        }
    }

    fn quality(&self) -> Quality {
        self.watch.qualities().into_values().next().unwrap()
    }

    fn kind(&self) -> Option<CauseKind> {
        self.quality().cause.map(|cause| cause.kind)
    }
}

#[test]
fn a_link_that_slows_down_to_a_tenth_is_named_within_ten_seconds_and_recovers() {
    let mut link = Link::new();
    link.run(120, true, 20.0, 0.01, 40.0);
    assert_eq!((link.kind(), link.events.len()), (None, 0));
    let capacity = link.quality().capacity_bps.unwrap();
    assert!((19_500_000..=20_000_000).contains(&capacity), "{capacity}");
    link.run(10, true, 2.0, 0.03, 110.0);
    assert_eq!(link.kind(), Some(CauseKind::Slow));
    let (at, kind) = link.events[0];
    assert!(kind == EventKind::PathDegraded && (120.0..130.0).contains(&at), "{at}");
    assert!(
        link.quality().cause.unwrap().text.starts_with("carries 1.9 Mbit/s, usually 19.8 Mbit/s"),
        "{:?}",
        link.quality()
    );
    // Without packets nothing shows that it is well again.
    link.run(300, false, 0.0, 0.0, 40.0);
    assert_eq!(link.kind(), Some(CauseKind::Slow));
    link.run(10, true, 20.0, 0.0, 40.0);
    assert_eq!(
        link.events.iter().map(|(_, kind)| *kind).collect::<Vec<_>>(),
        [EventKind::PathDegraded, EventKind::PathRecovered]
    );
}

#[test]
fn a_rate_that_swings_and_a_link_without_load_are_no_degradation() {
    let mut link = Link::new();
    for _ in 0..60 {
        link.run(3, true, 20.0, 0.0, 40.0);
        link.run(2, true, 8.0, 0.0, 60.0);
    }
    link.run(600, false, 0.1, 0.0, 40.0);
    assert_eq!((link.kind(), link.events.len()), (None, 0));
}

#[test]
fn loss_and_delay_are_judged_against_the_usual_ones() {
    let mut link = Link::new();
    link.run(60, false, 10.0, 0.001, 40.0);
    link.run(10, false, 10.0, 0.12, 40.0);
    assert_eq!(link.kind(), Some(CauseKind::Lossy), "{:?}", link.events);
    link.run(30, false, 10.0, 0.0, 40.0);
    assert_eq!(link.kind(), None);
    link.run(11, false, 0.0, 0.0, 150.0);
    assert_eq!(link.kind(), Some(CauseKind::Delayed));
    link.run(30, false, 0.0, 0.0, 45.0);
    assert_eq!(link.kind(), None);
    let degraded = |link: &Link| link.events.iter().filter(|(_, kind)| *kind == EventKind::PathDegraded).count();
    assert_eq!((degraded(&link), link.events.len()), (2, 4));
}

/// A slow start in a new path ends with a burst of losses.
#[test]
fn a_burst_of_losses_is_no_lossy_path() {
    let mut link = Link::new();
    link.run(5, false, 10.0, 0.0, 40.0);
    link.run(4, true, 10.0, 0.5, 40.0);
    link.run(20, true, 10.0, 0.0, 40.0);
    assert_eq!((link.kind(), link.events.len()), (None, 0));
}

#[test]
fn a_path_that_goes_down_three_times_in_five_minutes_flaps_until_it_has_been_quiet_as_long() {
    let mut link = Link::new();
    link.run(30, false, 1.0, 0.0, 40.0);
    for flap in 1..=3 {
        assert_eq!(link.kind(), None, "{flap}");
        link.flap();
        link.run(20, false, 1.0, 0.0, 40.0);
    }
    assert_eq!(link.kind(), Some(CauseKind::Flapping));
    link.run(270, false, 1.0, 0.0, 40.0);
    assert_eq!(link.kind(), Some(CauseKind::Flapping));
    link.run(40, false, 1.0, 0.0, 40.0);
    assert_eq!(link.kind(), None);
    assert_eq!(
        link.events.iter().map(|(_, kind)| *kind).collect::<Vec<_>>(),
        [EventKind::PathFlapping, EventKind::PathRecovered]
    );
}
