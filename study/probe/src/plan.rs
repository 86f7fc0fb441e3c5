//! Stages, their order, and their bytes.

use crate::client::Echo;
use crate::datagram::MIN_LEN;
use crate::source::PathSource;
use measured::{Direction, STREAMS, StageKind};
use std::time::Duration;
use units::RngStream;

/// Requests without load: 20 in a second.
pub(crate) const IDLE: Echo =
    Echo { payload_bytes: MIN_LEN, interval: Duration::from_millis(50), time: Duration::from_secs(5) };
/// Datagrams at a low rate: 2 Mbit/s in each direction.
pub(crate) const LOW_RATE: Echo =
    Echo { payload_bytes: 1200, interval: Duration::from_micros(4800), time: Duration::from_secs(4) };
/// A call: 50 datagrams in a second.
const CALL: Echo = Echo { payload_bytes: 160, interval: Duration::from_millis(20), time: Duration::ZERO };
/// The least payload of a flow that tells anything, bytes.
const MIN_FLOW: u64 = 100_000;
/// Time of a stage besides that of its data, seconds.
const OVERHEAD_S: f64 = 0.5;

/// What is to be measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Choices {
    /// The paths, each with a name of its own.
    pub paths: Vec<PathSource>,
    /// Repetitions of each stage.
    pub repeats: u32,
    /// The longest time of a TCP flow.
    pub flow_time: Duration,
    /// The algorithms of TCP flows. Parallel flows, calls and paths together use the first.
    pub congestions: Vec<String>,
    /// The most payload of all stages, both directions, bytes.
    pub budget_bytes: u64,
    /// The seed of the order of stages.
    pub seed: u64,
}

/// Stages in their order.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    pub(crate) choices: Choices,
    pub(crate) stages: Vec<PlannedStage>,
    /// The most payload of a flow.
    pub(crate) flow_bytes: u64,
}

/// A stage of a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PlannedStage {
    pub(crate) kind: StageKind,
    /// Indices of the paths.
    pub(crate) paths: Vec<usize>,
    pub(crate) direction: Direction,
    /// Of its TCP flows; empty without one.
    pub(crate) congestion: String,
    pub(crate) repeat: u32,
}

impl Plan {
    /// Plans the stages. Each repetition has all of them in a random order of its own, so that a path, a direction or an
    /// algorithm has no fixed place, and a link that changes slowly favours none.
    ///
    /// # Errors
    ///
    /// There is no path, two have one name, or the budget leaves a flow less than 100 kB.
    pub fn new(choices: Choices) -> Result<Self, String> {
        let mut names: Vec<&str> = choices.paths.iter().map(|path| path.name.as_str()).collect();
        names.sort_unstable();
        if let Some(pair) = names.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(format!("two paths are called `{}`", pair[0]));
        }
        if choices.paths.is_empty() || choices.congestions.is_empty() || choices.repeats == 0 {
            return Err("there is nothing to measure".to_owned());
        }
        let stages = (0..choices.repeats).flat_map(|repeat| one_repeat(&choices, repeat)).collect();
        let mut plan = Self { choices, stages, flow_bytes: 0 };
        let flows: u64 = plan.stages.iter().map(PlannedStage::flows).sum();
        let datagrams = plan.datagram_bytes();
        plan.flow_bytes = plan.choices.budget_bytes.saturating_sub(datagrams) / flows;
        if plan.flow_bytes < MIN_FLOW {
            let least = datagrams + flows * MIN_FLOW;
            return Err(format!("{flows} flows and the datagrams need at least {} MB", least.div_ceil(1_000_000)));
        }
        Ok(plan)
    }

    /// The most payload of all stages, both directions, bytes.
    pub fn bytes(&self) -> u64 {
        let flows: u64 = self.stages.iter().map(PlannedStage::flows).sum();
        self.datagram_bytes() + flows * self.flow_bytes
    }

    /// The number of stages.
    pub fn count(&self) -> usize {
        self.stages.len()
    }

    /// The most payload of a TCP flow, bytes.
    pub fn flow_bytes(&self) -> u64 {
        self.flow_bytes
    }

    /// The most payload of each of several flows on one path.
    pub(crate) fn bytes_of_parallel(&self) -> u64 {
        self.flow_bytes / u64::from(STREAMS)
    }

    /// The longest time, if each flow lasts as long as it may.
    pub fn time(&self) -> Duration {
        let stage = |stage: &PlannedStage| match stage.kind {
            StageKind::IdleRtt => IDLE.time,
            StageKind::Udp => LOW_RATE.time,
            StageKind::Tcp | StageKind::Parallel | StageKind::Call | StageKind::Together => self.choices.flow_time,
        };
        let data: Duration = self.stages.iter().map(stage).sum();
        data + Duration::from_secs_f64(OVERHEAD_S).saturating_mul(self.stages.len() as u32)
    }

    /// The stream of datagrams next to a flow.
    pub(crate) fn call(&self) -> Echo {
        Echo { time: self.choices.flow_time, ..CALL }
    }

    fn datagram_bytes(&self) -> u64 {
        let stage = |stage: &PlannedStage| match stage.kind {
            StageKind::IdleRtt => IDLE.bytes(),
            StageKind::Udp => LOW_RATE.bytes(),
            StageKind::Call => self.call().bytes(),
            StageKind::Tcp | StageKind::Parallel | StageKind::Together => 0,
        };
        self.stages.iter().map(stage).sum()
    }
}

impl PlannedStage {
    /// The number of its TCP flows.
    fn flows(&self) -> u64 {
        if self.congestion.is_empty() { 0 } else { self.paths.len() as u64 }
    }
}

impl Echo {
    /// Payload in both directions, bytes.
    fn bytes(&self) -> u64 {
        let count = self.time.as_nanos().div_ceil(self.interval.as_nanos().max(1)) as u64;
        2 * count * self.payload_bytes as u64
    }
}

/// All stages once, in random order.
fn one_repeat(choices: &Choices, repeat: u32) -> Vec<PlannedStage> {
    let mut stages = Vec::new();
    let mut add = |kind, paths: &[usize], direction, congestion: &str| {
        let (paths, congestion) = (paths.to_vec(), congestion.to_owned());
        stages.push(PlannedStage { kind, paths, direction, congestion, repeat });
    };
    for path in 0..choices.paths.len() {
        add(StageKind::IdleRtt, &[path], Direction::Up, "");
        add(StageKind::Udp, &[path], Direction::Up, "");
        for direction in Direction::ALL {
            add(StageKind::Call, &[path], direction, &choices.congestions[0]);
            add(StageKind::Parallel, &[path], direction, &choices.congestions[0]);
            for congestion in &choices.congestions {
                add(StageKind::Tcp, &[path], direction, congestion);
            }
        }
    }
    for paths in groups(choices.paths.len()) {
        for direction in Direction::ALL {
            add(StageKind::Together, &paths, direction, &choices.congestions[0]);
        }
    }
    let mut random = RngStream::named(choices.seed, &format!("order of repetition {repeat}"));
    stages.sort_by_cached_key(|_| random.bits());
    stages
}

/// Each pair of paths, and all together if they are more than two.
fn groups(count: usize) -> Vec<Vec<usize>> {
    let pairs = (0..count).flat_map(|first| (first + 1..count).map(move |second| vec![first, second]));
    let all = (count > 2).then(|| (0..count).collect());
    pairs.chain(all).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::Source;

    fn choices(count: usize, repeats: u32) -> Choices {
        let path = |index| PathSource { name: format!("p{index}"), source: Source::Any };
        Choices {
            paths: (0..count).map(path).collect(),
            repeats,
            flow_time: Duration::from_secs(8),
            congestions: vec!["cubic".into(), "bbr".into()],
            budget_bytes: 500_000_000,
            seed: 7,
        }
    }

    #[test]
    fn each_repetition_has_every_stage_once() {
        let plan = Plan::new(choices(3, 2)).unwrap();
        // Of a path: idle, UDP, two calls, four flows, parallel ones twice. Together: three pairs and all, in two directions.
        assert_eq!(plan.count(), 2 * (3 * 10 + 4 * 2));
        for repeat in 0..2 {
            let mut found: Vec<String> =
                plan.stages.iter().filter(|stage| stage.repeat == repeat).map(|stage| format!("{stage:?}")).collect();
            let count = found.len();
            found.sort();
            found.dedup();
            assert_eq!((count, found.len()), (38, 38));
        }
        assert_eq!(groups(1), Vec::<Vec<usize>>::new());
    }

    #[test]
    fn the_order_depends_on_the_seed_and_differs_between_repetitions() {
        let order = |plan: &Plan, repeat| -> Vec<PlannedStage> {
            let stages = plan.stages.iter().filter(|stage| stage.repeat == repeat);
            stages.cloned().map(|stage| PlannedStage { repeat: 0, ..stage }).collect()
        };
        let plan = Plan::new(choices(2, 2)).unwrap();
        assert_eq!(plan, Plan::new(choices(2, 2)).unwrap());
        assert_ne!(order(&plan, 0), order(&plan, 1));
        assert_ne!(order(&plan, 0), order(&Plan::new(Choices { seed: 8, ..choices(2, 2) }).unwrap(), 0));
    }

    #[test]
    fn the_bytes_of_a_plan_stay_within_the_budget() {
        let plan = Plan::new(choices(2, 3)).unwrap();
        assert!(plan.bytes() <= 500_000_000 && plan.bytes() > 499_999_000, "{}", plan.bytes());
        let error = Plan::new(Choices { budget_bytes: 10_000_000, ..choices(2, 3) }).unwrap_err();
        assert!(error.ends_with("MB"), "{error}");
    }

    #[test]
    fn a_plan_without_paths_or_with_two_of_one_name_is_refused() {
        assert!(Plan::new(choices(0, 1)).is_err() && Plan::new(choices(1, 0)).is_err());
        let mut twice = choices(2, 1);
        twice.paths[1].name = "p0".into();
        assert_eq!(Plan::new(twice).unwrap_err(), "two paths are called `p0`");
    }
}
