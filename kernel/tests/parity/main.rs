//! The eBPF programs beside the Rust controllers of the same names: the same events give the same windows, within the
//! rounding that a program's source states. The programs run natively, from the very same sources (`bpf/native`).
//!
//! Adding a program is a line of [`ALGORITHMS`].

mod discern;
mod formulas;
mod harness;
mod siblings;
mod subflows;
mod trace;

use conformance::controller::Action;
use harness::{Answer, Native};
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use trace::{Check, Step, record};

/// An algorithm that exists as a program and as a controller.
#[derive(Clone, Copy)]
struct Algorithm {
    /// Name in the registry.
    name: &'static str,
    /// The source is `bpf/PROGRAM.bpf.c`.
    program: &'static str,
    growth: Growth,
    /// By how many packets the thresholds may differ.
    ssthresh: u32,
    /// Of a model of the path that paces: by how much pacing rates may differ, in 1/256 of the bandwidth in the first word
    /// of the state (in bytes a microsecond, times 2^20).
    pacing_gain: Option<f64>,
    /// Parameters of the controller that are not the default.
    choices: &'static [(&'static str, &'static str)],
    /// Whether sequence numbers count bytes, as in the kernel, or packets, as the controllers' do.
    bytes: bool,
    /// Whether two paths of the three stay idle: the algorithm is Reno.
    alone: bool,
}

/// How a window changes at acknowledgements.
#[derive(Clone, Copy)]
enum Growth {
    /// Both count in the same integers.
    Exact,
    /// By fractions of a packet (`struct growth` of shares.bpf.h), which both sum up from nothing since the latest
    /// reduction.
    Fractions {
        /// Rounding of an increase in packets, in relation to `acked / cwnd`.
        rounding: f64,
        /// Whether the window can shrink too.
        shrinks: bool,
    },
    /// The program has floats in fixed point: each window is within a packet and a 1024th, and so is the pacing rate.
    FixedPoint,
}

impl Algorithm {
    /// Growth by fractions of a packet, with the rounding of shares.bpf.h; Reno's threshold.
    const fn shares(name: &'static str) -> Self {
        let growth = Growth::Fractions { rounding: 1.0 / 4096.0, shrinks: false };
        Self { name, program: name, growth, ssthresh: 0, pacing_gain: None, choices: &[], bytes: false, alone: false }
    }

    /// The controller's integers, to the packet.
    const fn exact(name: &'static str) -> Self {
        Self {
            name,
            program: name,
            growth: Growth::Exact,
            ssthresh: 0,
            pacing_gain: None,
            choices: &[],
            bytes: false,
            alone: false,
        }
    }

    /// A model of the path, in the controller's integers.
    const fn model(name: &'static str, program: &'static str, pacing_gain: f64) -> Self {
        Self { program, pacing_gain: Some(pacing_gain), ..Self::exact(name) }
    }

    /// The controller's floats in fixed point; both window and pacing rate are compared. It has no siblings here: the pairs of
    /// a controller have one clock for comparisons, those of a program one for each subflow.
    const fn fixed_point(name: &'static str) -> Self {
        Self { growth: Growth::FixedPoint, alone: true, ssthresh: 1, ..Self::model(name, name, 0.0) }
    }

    /// A coupling over BBR. One that counts in fractions is compared without siblings: its increase has been, and the
    /// coupled window, which the decision does not show, could drift by a packet.
    const fn over_bbr(name: &'static str, program: &'static str, alone: bool) -> Self {
        Self { choices: &[("path", "bbr")], alone, ..Self::model(name, program, 0.0) }
    }

    /// Whether the action is one for this algorithm. A controller of a model is told of marks, and of losses after them,
    /// where a kernel does not tell its program; of a new packet size siblings learn with the next acknowledgement, the
    /// controllers at once.
    fn takes(&self, path: usize, action: Action) -> bool {
        if self.alone && path > 0 {
            return false;
        }
        match (self.pacing_gain, action) {
            // A subflow that comes up again is a new socket, which knows nothing of the earlier one.
            (_, Action::Toggle) => self.name != "discern",
            (Some(_), Action::Mark | Action::LocalDrop) => false,
            // A kernel does not tell, or within an acknowledgement only.
            (Some(_), Action::TlpRecovery) => !["bbr3", "discern"].contains(&self.name),
            (Some(pacing_gain), Action::Mss(_)) => pacing_gain == 0.0,
            _ => true,
        }
    }

    /// With thresholds within so many packets.
    const fn ssthresh(self, packets: u32) -> Self {
        Self { ssthresh: packets, ..self }
    }

    /// With windows that can shrink.
    const fn shrinks(self) -> Self {
        let Growth::Fractions { rounding, .. } = self.growth else { return self };
        Self { growth: Growth::Fractions { rounding, shrinks: true }, ..self }
    }
}

const ALGORITHMS: &[Algorithm] = &[
    Algorithm::shares("lia"),
    Algorithm::shares("olia").shrinks(),
    Algorithm::shares("balia").ssthresh(1),
    Algorithm::exact("wvegas"),
    Algorithm::model("bbr", "bbr", 0.0),
    Algorithm::model("bbr3", "bbr3", 0.0),
    Algorithm::model("coupled-bbr", "coupled_bbr", 1.0),
    Algorithm::fixed_point("discern"),
    Algorithm::over_bbr("lia", "lia_bbr", true),
    Algorithm::over_bbr("olia", "olia_bbr", true),
    Algorithm::over_bbr("balia", "balia_bbr", true),
    Algorithm::over_bbr("wvegas", "wvegas_bbr", false),
    Algorithm::exact("scalable"),
    Algorithm::exact("highspeed"),
    Algorithm::exact("hybla"),
    Algorithm { bytes: true, ..Algorithm::exact("westwood") },
    Algorithm::exact("vegas"),
    Algorithm::exact("veno"),
    Algorithm::exact("bic"),
    Algorithm::exact("illinois"),
    Algorithm::exact("yeah"),
    Algorithm::exact("htcp"),
    Algorithm { choices: &[("delay", "rtt")], ..Algorithm::exact("lp") },
    Algorithm::exact("dctcp"),
];

fn action() -> impl Strategy<Value = Action> {
    let lost = prop_oneof![12 => Just(0u32), 1 => 1..20u32];
    let ack = (0..40u32, lost, 1..400_000u64).prop_map(|(acked, lost, rtt_us)| Action::Ack { acked, lost, rtt_us });
    prop_oneof![
        16 => (1..100u32).prop_map(Action::Send),
        16 => ack,
        4 => (0..300u64).prop_map(Action::Wait),
        1 => Just(Action::Mark),
        1 => Just(Action::LocalDrop),
        1 => Just(Action::Timeout),
        1 => Just(Action::SpuriousLoss),
        1 => Just(Action::TlpRecovery),
        1 => (0..200u32).prop_map(Action::ApplicationLimited),
        1 => (500..9000u32).prop_map(Action::Mss),
        1 => (5_000..20_000u64).prop_map(Action::Wait),
        1 => Just(Action::Toggle),
    ]
}

/// Actions on the paths of one connection: single ones, and round trips without fault, in which windows grow.
fn actions() -> impl Strategy<Value = Vec<(usize, Action)>> {
    let round_trips = (0..3usize, 1000..400_000u64, 1..60usize).prop_map(|(path, rtt_us, rounds)| {
        let ack = Action::Ack { acked: 1000, lost: 0, rtt_us };
        let round = [Action::Send(1000), Action::Wait(rtt_us / 1000), ack].map(|action| (path, action));
        std::iter::repeat_n(round, rounds).flatten().collect()
    });
    let single = (0..3usize, action()).prop_map(|action| vec![action]);
    let mixed = prop::collection::vec(prop_oneof![4 => single, 1 => round_trips], 1..60);
    prop_oneof![2 => mixed.prop_map(|parts| parts.concat()), 1 => queueing()]
}

/// A path that is never idle, with a queue that comes and goes: its base RTT stays, and rounds have many samples.
fn queueing() -> impl Strategy<Value = Vec<(usize, Action)>> {
    let sign = prop_oneof![6 => Just(None), 1 => Just(Some(Action::Mark)), 1 => Just(Some(Action::Timeout))];
    let phase = (0..40u64, 1..4u32, prop_oneof![8 => Just(0u32), 1 => Just(1)], 1..60usize, sign);
    (1..100u64, prop::collection::vec(phase, 1..30)).prop_map(|(base_ms, phases)| {
        let mut actions = vec![Action::Send(1000)];
        for (queue_percent, acked, lost, acks, sign) in phases {
            let rtt_us = base_ms * 10 * (100 + queue_percent);
            let ack = [Action::Wait(base_ms / 8), Action::Ack { acked, lost: 0, rtt_us }, Action::Send(1000)];
            actions.extend(sign);
            actions.push(Action::Ack { acked, lost, rtt_us });
            actions.extend(std::iter::repeat_n(ack, acks).flatten());
        }
        actions.into_iter().map(|action| (0, action)).collect()
    })
}

/// By how much the program's window has grown more than the controller's since a reduction.
#[derive(Clone, Copy, Default)]
struct Drift {
    packets: i64,
    /// Bound of what rounding adds to it, packets.
    rounding: f64,
    /// Packets that the least window may have swallowed of either.
    swallowed: f64,
}

impl Drift {
    /// Compares what both have grown, fractions included. The controller's fraction is not known: it is above -1 and
    /// below 1, and not negative where windows only grow.
    fn check(&mut self, growth: Growth, step: &Step, answer: &Answer) -> bool {
        let more = i64::from(answer.cwnd) - i64::from(step.decision.cwnd);
        if let Growth::FixedPoint = growth {
            return more.unsigned_abs() <= rounding_of(step.decision.cwnd);
        }
        self.packets += more;
        let Growth::Fractions { rounding, shrinks } = growth else { return self.packets == 0 };
        self.rounding += rounding * f64::from(step.acked) / f64::from(step.prior.cwnd) + 1.0 / f64::from(1 << 28);
        let more = self.packets as f64 + answer.state[1] as f64 / (1u64 << 40) as f64;
        let (least, most) = (if shrinks { -1.0 } else { 0.0 }, 1.0);
        let slack = self.rounding + self.swallowed;
        if shrinks && answer.cwnd.min(step.decision.cwnd) <= 2 {
            *self = Self { swallowed: 1.0, ..Self::default() };
        }
        (least - slack..=most + slack).contains(&more)
    }
}

/// By how many packets a window in fixed point may differ.
fn rounding_of(cwnd: u32) -> u64 {
    1 + u64::from(cwnd) / 1024
}

/// Compares a decision of the program with the controller's.
fn compare(algorithm: Algorithm, drift: &mut Drift, step: &Step, answer: &Answer) -> Result<(), &'static str> {
    if !step.check.cwnd {
        *drift = Drift::default();
    } else if !drift.check(algorithm.growth, step, answer) {
        return Err("another window");
    }
    let of_fixed_point = if let Growth::FixedPoint = algorithm.growth { rounding_of(step.decision.cwnd) } else { 0 };
    let tolerance = algorithm.ssthresh.max(of_fixed_point as u32);
    if step.check.ssthresh && answer.ssthresh.abs_diff(step.decision.ssthresh) > tolerance {
        return Err("another threshold");
    }
    let rate = step.decision.pacing_rate.map_or(0.0, |rate| rate.as_bits() as f64 / 8.0);
    let bandwidth = answer.state[0] as f64 * 1e6 / f64::from(1 << 20);
    let tolerance = algorithm.pacing_gain.unwrap_or(0.0) * bandwidth / 256.0
        + 2.0 * of_fixed_point as f64 * rate / f64::from(step.decision.cwnd);
    if rate > 0.0 && (answer.pacing_rate as f64 - rate).abs() > tolerance {
        return Err("another pacing rate");
    }
    Ok(())
}

fn check(native: &Native, algorithm: Algorithm, actions: &[(usize, Action)]) -> Result<(), String> {
    let actions: Vec<_> = actions.iter().copied().filter(|&(path, action)| algorithm.takes(path, action)).collect();
    let steps = record(algorithm, &actions)?;
    let lines: Vec<&str> = steps.iter().map(|step| &*step.line).collect();
    let answers = native.run(&lines)?;
    let mut drifts = [Drift::default(); 3];
    for (step, answer) in steps.iter().zip(&answers) {
        if step.check == Check::NOTHING {
            if step.line.starts_with("congestion") {
                drifts[step.path] = Drift::default();
            }
            continue;
        }
        compare(algorithm, &mut drifts[step.path], step, answer).map_err(|difference| {
            let (name, line, prior, decision) = (algorithm.name, &step.line, step.prior, step.decision);
            format!(
                "{name}: {difference}\n{line}\nbefore:     {prior:?}\ncontroller: {decision:?}\nprogram:    {answer:?}"
            )
        })?;
    }
    Ok(())
}

/// The same cases in each run: where a share of the rate is next to an integer, or two of OLIA's paths are next to equally
/// good, integers and floats may fall to two sides. That is rare, and would be a failure of no program.
fn runner() -> TestRunner {
    let config = Config { cases: 64, failure_persistence: None, ..Config::default() };
    TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha))
}

#[test]
fn programs_decide_as_the_controllers_do() {
    for &algorithm in ALGORITHMS {
        let Some(native) = Native::of(algorithm.program) else { return };
        let result =
            runner().run(&actions(), |actions| check(&native, algorithm, &actions).map_err(TestCaseError::fail));
        assert!(result.is_ok(), "{}", result.unwrap_err());
    }
}
