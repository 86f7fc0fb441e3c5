use super::*;
use record::{Multipath, Summary};

/// The times of a path of a flow of 20 s: limited by its window while it was used, and by `cause` for `cause_s`.
fn limits(utilisation: f64, cause: &str, cause_s: f64) -> LimitTimes {
    let mut times = [0.0; 8];
    let mut add = |name: &str, time| times[LimitTimes::NAMES.iter().position(|it| *it == name).expect("known")] += time;
    add("window", 20.0 * utilisation);
    add(cause, cause_s);
    add("application", 20.0 - 20.0 * utilisation - cause_s);
    LimitTimes::from_array(times)
}

fn path(name: &str, utilisation: f64) -> Path {
    Path { name: name.to_owned(), utilisation, sent_packets: 1000, ..Path::default() }
}

/// Data with this mean head-of-line delay, ms.
fn waited(mean: f64) -> Option<Multipath> {
    Some(Multipath { head_of_line_delay_ms: Summary { mean, ..Summary::default() }, ..Multipath::default() })
}

/// A run of an MPTCP flow over fibre of 50 and LTE of 10 Mbit/s: the share of fibre that it used, and the time that the send
/// buffer limited it.
fn run(fibre: f64, limited_s: f64) -> Run {
    let subflow = |path: &str, throughput_mbps, rtt, limits| Subflow {
        path: path.to_owned(),
        throughput_mbps,
        rtt_ms: Summary { mean: rtt, p95: 2.0 * rtt, ..Summary::default() },
        limited_s: Some(limits),
        ..Subflow::default()
    };
    Run {
        duration_s: 20.0,
        flows: vec![Flow {
            name: "f".to_owned(),
            congestion_control: "olia".to_owned(),
            throughput_mbps: 50.0 * fibre + 2.0,
            send_buffer_limited_s: limited_s,
            multipath: waited(1472.0),
            limited_s: Some(limits(fibre, "send_buffer", limited_s)),
            ..Flow::default()
        }],
        subflows: vec![
            subflow("fibre", 50.0 * fibre, 25.0, limits(fibre, "send_buffer", limited_s)),
            subflow("lte", 2.0, 300.0, limits(1.0, "window", 0.0)),
        ],
        paths: vec![path("fibre", fibre), path("lte", 0.2)],
        ..Run::default()
    }
}

/// A run of a TCP flow on a link of 50 Mbit/s that it used to this share, limited otherwise by `cause` for `cause_s`.
fn one_path(utilisation: f64, cause: &str, cause_s: f64) -> Run {
    Run {
        duration_s: 20.0,
        capacity_mbps: Some(50.0),
        flows: vec![Flow {
            name: "f".to_owned(),
            congestion_control: "cubic".to_owned(),
            throughput_mbps: 50.0 * utilisation,
            limited_s: Some(limits(utilisation, cause, cause_s)),
            ..Flow::default()
        }],
        paths: vec![path("link", utilisation)],
        ..Run::default()
    }
}

fn shown(runs: &[Run]) -> Vec<String> {
    diagnoses(&Study { runs, ..Study::default() }).iter().map(Diagnosis::sentence).collect()
}

#[test]
fn a_flow_that_waits_for_its_slow_path_is_diagnosed_and_others_are_not() {
    let sentence = "f: for 39 % of the time the full send buffer had no data for fibre, while fibre was used to 60 %. Data \
                    waited for lte: the mean head-of-line delay was 1472 ms. With headers the flow carried 32 Mbit/s; \
                    fibre alone would carry about 50.";
    assert_eq!(shown(&[run(0.6, 7.8)]), [sentence]);
    assert_eq!(shown(&[run(0.5, 9.0), run(0.7, 6.6)]), [sentence], "means of two seeds");
    for other in [run(0.95, 1.0), run(0.6, 4.0)] {
        assert!(shown(&[other]).is_empty(), "fibre is full, or half of what it has left has another cause");
    }
    let mut shared = run(0.6, 7.8);
    shared.flows.push(Flow::default());
    assert!(shown(&[shared]).is_empty(), "what fibre has left is not known");
    let mut in_order = run(0.6, 7.8);
    in_order.flows[0].multipath = waited(3.0);
    assert!(!shown(&[in_order])[0].contains("waited"), "nothing waited at the receiver");
}

/// Results of a kernel, and of earlier versions.
#[test]
fn the_times_of_buffers_alone_are_enough() {
    let mut measured = run(0.6, 18.8);
    measured.flows[0].limited_s = None;
    measured.subflows.iter_mut().for_each(|subflow| subflow.limited_s = None);
    assert!(shown(&[measured])[0].starts_with("f: for 94 % of the time the full send buffer had no data"));
}

#[test]
fn each_cause_that_leaves_a_path_idle_is_named() {
    let causes = [
        ("handshake", "the connection was not established"),
        ("receive_window", "the receive window had no room"),
        ("recovery", "cubic held data back to send lost data again"),
        ("pacing", "the pacing rate of cubic held data back"),
        ("window", "the congestion window of cubic was full"),
        ("scheduler", "the scheduler gave link nothing"),
    ];
    for (cause, clause) in causes {
        let times = if cause == "window" { "90 %" } else { "80 %" };
        let sentence = format!(
            "f: for {times} of the time {clause}, while link was used to 10 %. With headers the flow carried 5 Mbit/s; link would carry about 50."
        );
        assert_eq!(shown(&[one_path(0.1, cause, 16.0)]), [sentence]);
    }
    for normal in [one_path(0.98, "window", 0.3), one_path(0.1, "application", 16.0), one_path(0.1, "pacing", 8.0)] {
        assert!(shown(&[normal]).is_empty(), "a full link, an application with little data, no dominant cause");
    }
}

#[test]
fn the_path_of_acknowledgements_is_not_taken_for_the_flows() {
    let mut reverse = one_path(0.03, "window", 16.0);
    reverse.flows[0].throughput_mbps = 48.0;
    assert!(shown(&[reverse]).is_empty(), "1600 Mbit/s are more than the link's 50");
}

#[test]
fn a_cause_is_named_once_with_the_worst_cell() {
    let cell = |utilisation, loss: &str| {
        let parameters = [("path.link.loss".to_owned(), loss.to_owned())].into();
        Run { parameters, ..one_path(utilisation, "window", 19.0 - 20.0 * utilisation) }
    };
    let runs = [cell(0.3, "1%"), cell(0.1, "2%"), cell(0.2, "3%"), cell(0.95, "0%")];
    let sentences = shown(&runs);
    assert_eq!(sentences.len(), 1, "{sentences:?}");
    assert!(sentences[0].starts_with("f (loss 2%): for 95 % of the time"), "{sentences:?}");
    assert!(sentences[0].ends_with("would carry about 50. The cause is the same in 2 more cells."), "{sentences:?}");
}
