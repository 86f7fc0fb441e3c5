use scenario::model::*;
use units::*;
fn pipe(rate: Option<u64>, delay_us: u64, limit: Limit, local: bool) -> Pipe {
    Pipe {
        rate: rate.map(Rate::from_mbit),
        trace: None,
        delay: Span::from_micros(delay_us),
        jitter: Span::ZERO,
        loss: Loss::None,
        overhead: if rate.is_some() { 38 } else { 0 },
        queue: Queue { limit, discipline: Discipline::DropTail, ecn: false },
        local,
        wire_limit: None,
    }
}
fn link(name: &str, f: Pipe, r: Pipe) -> Link {
    Link { name: name.into(), forward: f, reverse: r }
}
fn tcp(cc: &str, route: Route, name: &str) -> Flow {
    Flow {
        name: name.into(),
        route,
        start: Instant::ZERO,
        stop: None,
        kind: FlowKind::Tcp {
            congestion: Congestion { name: cc.into(), parameters: Default::default() },
            size: None,
            host: Host {
                tick: Span::from_millis(std::env::var("TICK").map_or(4, |t| t.parse().unwrap())),
                ..Host::default()
            },
        },
    }
}
fn main() {
    let a: Vec<String> = std::env::args().collect();
    let t0 = std::time::Instant::now();
    let e = match a[1].as_str() {
        "cw" => {
            // cc
            let p = pipe(Some(100), 10_000, Limit::Packets(165), true);
            let mut r = p.clone();
            r.local = false;
            Experiment {
                name: "cw".into(),
                duration: Span::from_secs(20),
                sample: Some(Span::from_millis(100)),
                links: vec![link("l", p, r)],
                paths: vec![Path { name: "p".into(), links: vec![0] }],
                tunnel: None,
                flows: vec![tcp(&a[2], Route::Path(0), "f")],
                events: vec![],
            }
        }
        "w1" | "w2" => {
            let (rate, n, secs, q) = if a[1] == "w1" { (100, 1, 100, 167) } else { (1000, 10, 20, 1667) };
            let fast = |us| pipe(Some(rate * 10), us, Limit::Packets(100_000), false);
            let b = pipe(Some(rate), 8_000, Limit::Packets(q), false);
            Experiment {
                name: "w".into(),
                duration: Span::from_secs(secs),
                sample: None,
                links: vec![
                    link("a", fast(1000), fast(1000)),
                    link("b", b.clone(), b),
                    link("c", fast(1000), fast(1000)),
                ],
                paths: vec![Path { name: "p".into(), links: vec![0, 1, 2] }],
                tunnel: None,
                flows: (0..n).map(|i| tcp(&a[2], Route::Path(0), &format!("f{i}"))).collect(),
                events: vec![],
            }
        }
        "hm" => {
            // cc delay_ms first stray ring socket secs
            let d: u64 = a[3].parse().unwrap();
            let g = |i: usize, d: u32| a.get(i).map_or(d, |x| x.parse().unwrap());
            let q = pipe(Some(100), 125, Limit::Packets(1000), false);
            let mut nf = pipe(None, d * 1000, Limit::Packets(1000000), false);
            nf.wire_limit = Some(1000);
            let nr = pipe(None, 0, Limit::Packets(1000000), false);
            let device = if g(6, 0) > 0 { Some(Device { ring: g(6, 0), socket: g(7, 92) }) } else { None };
            Experiment {
                name: "hm".into(),
                duration: Span::from_secs(g(8, 100).into()),
                sample: Some(Span::from_millis(1000)),
                links: vec![link("e1", q.clone(), q.clone()), link("n", nf, nr), link("e2", q.clone(), q)],
                paths: vec![Path { name: "p0".into(), links: vec![0] }, Path { name: "p1".into(), links: vec![1, 2] }],
                tunnel: Some(Tunnel {
                    paths: vec![0, 1],
                    stripe: Stripe::PacketRoundRobin,
                    weights: vec![1, 1],
                    first: g(4, 0),
                    stray_packets: g(5, 0),
                    overhead: 36,
                    mtu: 1440,
                    resequence: Some(Resequence { window: 1600, timeout: Span::from_millis(300), deliver_late: false }),
                    device,
                }),
                flows: vec![tcp(&a[2], Route::Tunnel, "f")],
                events: vec![],
            }
        }
        "sa" | "sb" | "1p" => {
            // cc d|l value first
            let v: f64 = a[4].parse().unwrap();
            let q = pipe(Some(100), 125, Limit::Packets(150), false);
            let mut nf = pipe(None, if a[3] == "d" { (v * 1000.0) as u64 } else { 0 }, Limit::Packets(1000000), false);
            if a[3] == "l" {
                nf.loss = Loss::Random(v / 100.0);
            }
            nf.wire_limit = Some(1000);
            let nr = pipe(None, 0, Limit::Packets(1000000), false);
            let one = a[1] == "1p";
            Experiment {
                name: "sa".into(),
                duration: Span::from_secs(20),
                sample: Some(Span::from_millis(1000)),
                links: vec![link("e1", q.clone(), q.clone()), link("n", nf, nr), link("e2", q.clone(), q)],
                paths: vec![Path { name: "p0".into(), links: vec![0] }, Path { name: "p1".into(), links: vec![1, 2] }],
                tunnel: (!one).then(|| Tunnel {
                    paths: vec![0, 1],
                    stripe: Stripe::PacketRoundRobin,
                    weights: vec![1, 1],
                    first: a.get(5).map_or(0, |x| x.parse().unwrap()),
                    stray_packets: 0,
                    overhead: 36,
                    mtu: 1440,
                    resequence: (a[1] == "sb").then_some(Resequence {
                        window: 256,
                        timeout: Span::from_millis(100),
                        deliver_late: true,
                    }),
                    device: None,
                }),
                flows: vec![tcp(&a[2], if one { Route::Path(1) } else { Route::Tunnel }, "f")],
                events: vec![],
            }
        }
        _ => panic!(),
    };
    let run = ropewalk_sim::run(&e, 1).unwrap();
    let dt = t0.elapsed().as_secs_f64();
    let f = &run.flows[0];
    println!(
        "{} {:?} goodput {:.2} retr {} rec {} undone {} to {} rtt {:.2}/{:.2}/{:.2} rwnd {:.1} sndbuf {:.1}  total {:.2}",
        a[1],
        &a[2..],
        f.goodput_mbps,
        f.retransmitted_packets,
        f.recoveries,
        f.undone,
        f.timeouts,
        f.rtt_ms.min,
        f.rtt_ms.mean,
        f.rtt_ms.max,
        f.receive_window_limited_s,
        f.send_buffer_limited_s,
        run.flows.iter().map(|f| f.goodput_mbps).sum::<f64>()
    );
    println!(
        "  {:.2}s wall, data hops/s {:.2} M, delivered/s {:.2} M, events {} {:?}",
        dt,
        run.work.data_packet_hops as f64 / dt / 1e6,
        run.work.delivered_data_packets as f64 / dt / 1e6,
        run.work.events,
        run.tunnel.as_ref().map(|t| (t.late_packets, t.overflows, t.timeouts, t.dropped_packets, t.most_held))
    );
    for p in &run.paths {
        println!(
            "  path {} sent {} del {} drop {} util {:.3} q {:.2} ms",
            p.name, p.sent_packets, p.delivered_packets, p.dropped_packets, p.utilisation, p.queue_delay_ms
        );
    }
    if std::env::var("S").is_ok() {
        for s in &run.series {
            for (i, c) in s.columns.iter().enumerate() {
                println!(
                    "  {} {}: {:?}",
                    s.subject,
                    c,
                    s.values[i].iter().take(60).map(|x| (x * 10.0).round() / 10.0).collect::<Vec<_>>()
                );
            }
        }
    }
}
