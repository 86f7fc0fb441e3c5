//! One world, advanced from decision to decision.

use crate::config::{Config, ConfigError, Kind};
use crate::packets::PacketRun;
use crate::world::{World, draw, draw_baseline};
use control::{Context, Controller};
use policy::{PolicyController, Share, Summary, weights_of};
use record::Run;
use schedule::{Fixed, Scheduler, Weighted};
use sim::Simulation;
use std::any::Any;
use std::sync::Arc;
use units::{Instant, PathId, RngStream};

/// The measures reported for each learner in addition to observation and reward. They are the time of the decision,
/// payload rates, mean RTT, minimum RTT (both NaN before the first sample), the fraction of packets lost in the interval,
/// the congestion window, and the rate of the world's links.
pub const MEASURES: [&str; 8] = [
    "time_s",
    "throughput_mbps",
    "send_rate_mbps",
    "rtt_ms",
    "min_rtt_ms",
    "loss_ratio",
    "cwnd_packets",
    "capacity_mbps",
];

/// A world whose policy runs outside the simulation.
#[derive(Debug)]
pub struct Environment {
    config: Arc<Config>,
    simulation: Option<Simulation>,
    /// The learning flows by their places in the world.
    flows: Vec<usize>,
    /// One per learner.
    shares: Vec<Share>,
    end: Instant,
    /// Per learner: whether its interval has been closed and its action is due.
    awaits: Vec<bool>,
    /// The run, if packets are scheduled one by one; it has the simulation until the episode ends.
    packets: Option<PacketRun>,
    /// Per learner: rewards before the first choice of a path, which the first step gives.
    early_rewards: Vec<f64>,
    has_record: bool,
    rng: RngStream,
}

/// An episode with a classical algorithm.
#[derive(Clone, Debug)]
pub struct Episode {
    /// The world, in which the learning flows have the algorithm.
    pub world: World,
    /// Rewards: one row per step, of all learners.
    pub rewards: Vec<f64>,
    /// Rows of [`MEASURES`], one per step and learner.
    pub measures: Vec<f64>,
    /// The record of the run.
    pub run: Run,
}

/// What controls the learning flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Steering {
    /// Actions.
    FromOutside,
    /// The flows' own algorithms, which are measured.
    Watching,
}

/// The seed of episode `number` (from 0) of an environment that was seeded with `seed`. Episode 0 has the seed itself,
/// later ones seeds below 2^63, which the text of a scenario can hold.
#[must_use]
pub fn episode_seed(seed: u64, number: u64) -> u64 {
    if number == 0 { seed } else { RngStream::named(seed, &format!("episode {number}")).bits() >> 1 }
}

impl Environment {
    /// A new environment, before its first episode.
    #[must_use]
    pub fn new(config: Arc<Config>) -> Self {
        Self {
            awaits: vec![false; config.learners],
            simulation: None,
            packets: None,
            early_rewards: Vec::new(),
            flows: Vec::new(),
            shares: vec![Share::default(); config.learners],
            has_record: false,
            end: Instant::ZERO,
            rng: RngStream::named(0, "environment"),
            config,
        }
    }

    /// An environment whose episodes have complete records. Other environments leave out distributions of times.
    #[must_use]
    pub fn with_record(config: Arc<Config>) -> Self {
        Self { has_record: true, ..Self::new(config) }
    }

    /// The configuration.
    #[must_use]
    pub fn config(&self) -> &Arc<Config> {
        &self.config
    }

    /// Takes over the ranges of another configuration for later episodes. Its observations and actions must have the
    /// same sizes.
    pub fn set_config(&mut self, config: Arc<Config>) {
        self.config = config;
    }

    /// Begins the episode of a seed and runs to its first decision. Writes the observations and measures of all
    /// learners.
    ///
    /// # Panics
    /// If the length of a slice is not the number of learners times the numbers of each.
    pub fn reset(&mut self, seed: u64, observations: &mut [f32], measures: &mut [f64]) {
        let world = draw(&self.config, seed);
        let kind = self.config.kind;
        self.begin(&world, if kind.is_scheduler() { Steering::Watching } else { Steering::FromOutside });
        observations.fill(0.0);
        let mut rewards = vec![0.0; self.config.learners];
        measures.copy_from_slice(&self.no_measures()); // a flow that starts later has none yet
        if kind == Kind::Packet {
            self.packets = Some(PacketRun::begin(self.take_for_packets()));
            self.next_choice(observations, &mut rewards, measures);
            self.early_rewards = rewards;
        } else {
            self.advance(observations, &mut rewards, measures);
        }
    }

    /// Moves the begun simulation into an environment for the thread of a run by packets.
    fn take_for_packets(&mut self) -> Self {
        Self {
            simulation: self.simulation.take(),
            flows: self.flows.clone(),
            has_record: self.has_record,
            shares: self.shares.clone(),
            end: self.end,
            ..Self::new(Arc::clone(&self.config))
        }
    }

    /// The measures before the first interval has ended.
    pub(crate) fn no_measures(&self) -> Vec<f64> {
        let of_learner = |share: &Share| [0.0, 0.0, 0.0, f64::NAN, f64::NAN, 0.0, 0.0, share.capacity];
        self.shares.iter().flat_map(of_learner).collect()
    }

    /// Runs to the next choice of a path. Returns whether the episode is over.
    fn next_choice(&mut self, observations: &mut [f32], rewards: &mut [f64], measures: &mut [f64]) -> bool {
        let packets = self.packets.as_mut().expect("reset first");
        rewards.fill(0.0);
        rewards.iter_mut().zip(self.early_rewards.drain(..)).for_each(|(reward, early)| *reward = early);
        let chooses = packets.next(observations, rewards, measures);
        if let Some(learner) = chooses {
            self.awaits[learner] = true;
        }
        chooses.is_none()
    }

    /// The whole episode of a seed with a classical algorithm in the place of the policy: a congestion control, or a
    /// scheduler where actions are a scheduler's; without a name, what the world gives the flow. The episode under way stays.
    ///
    /// # Errors
    /// A name that no algorithm has, or a world in which it cannot run.
    pub fn baseline(config: &Arc<Config>, name: Option<&str>, seed: u64) -> Result<Episode, ConfigError> {
        let world = draw_baseline(config, seed, name)?;
        let mut environment = Self::with_record(Arc::clone(config));
        Simulation::new(&world.experiment, world.seed)
            .map_err(|error| ConfigError::new("baseline", error.to_string()))?;
        environment.begin(&world, Steering::Watching);
        let learners = config.learners;
        let mut observations = vec![0.0; learners * config.settings.observation_len()];
        let (mut rewards, mut measures) = (vec![0.0; learners], vec![0.0; learners * MEASURES.len()]);
        let (mut all_rewards, mut all_measures) = (Vec::new(), Vec::new());
        environment.advance(&mut observations, &mut rewards, &mut measures);
        loop {
            let is_over = environment.advance(&mut observations, &mut rewards, &mut measures);
            all_rewards.extend_from_slice(&rewards);
            all_measures.extend_from_slice(&measures);
            if is_over {
                let run = environment.take_simulation().expect("it has begun").finish();
                return Ok(Episode { world, rewards: all_rewards, measures: all_measures, run });
            }
        }
    }

    /// The record of the episode of a seed in which these actions were taken, one row per step.
    #[must_use]
    pub fn record(config: &Arc<Config>, actions: &[f32], seed: u64) -> Run {
        let mut environment = Self::with_record(Arc::clone(config));
        let learners = config.learners;
        let mut observations = vec![0.0; learners * config.observation_len()];
        let (mut rewards, mut measures) = (vec![0.0; learners], vec![0.0; learners * MEASURES.len()]);
        environment.reset(seed, &mut observations, &mut measures);
        for actions in actions.chunks_exact(learners * config.action_len()) {
            environment.step(actions, &mut observations, &mut rewards, &mut measures);
        }
        environment.take_simulation().expect("reset").finish()
    }

    /// Makes the run of a world, with the controllers of the learning flows as `steering` says.
    fn begin(&mut self, world: &World, steering: Steering) {
        let mut simulation = Simulation::new(&world.experiment, world.seed).expect("the configuration was checked");
        if !self.has_record {
            simulation.leave_out_distributions();
        }
        for flow in &world.learners {
            let slot = simulation.controller(*flow).expect("learners are TCP");
            let settings = self.config.settings.clone();
            let controller = PolicyController::from_outside(settings.clone());
            let own = std::mem::replace(slot, Box::new(controller));
            if steering == Steering::Watching {
                *slot = Box::new(PolicyController::watching(settings, own));
            }
        }
        (self.shares, self.end, self.flows) = (world.shares.clone(), simulation.end(), world.learners.clone());
        (self.simulation, self.packets) = (Some(simulation), None);
        self.awaits.fill(false);
    }

    /// Carries out the actions of all learners and runs to the next decision of any of them. Writes observations,
    /// rewards and measures. A learner without a decision keeps its observation, has reward 0, and its next action is
    /// ignored. Returns whether the episode is over.
    ///
    /// # Panics
    /// Before the first [`reset`](Self::reset), or if the length of a slice is not the number of learners times the
    /// numbers of each.
    pub fn step(
        &mut self,
        actions: &[f32],
        observations: &mut [f32],
        rewards: &mut [f64],
        measures: &mut [f64],
    ) -> bool {
        let len = self.config.action_len();
        for (learner, action) in actions.chunks_exact(len).enumerate() {
            if self.awaits[learner] {
                self.decide(learner, action);
                self.awaits[learner] = false;
            }
        }
        match self.config.kind {
            Kind::Packet => self.next_choice(observations, rewards, measures),
            _ => self.advance(observations, rewards, measures),
        }
    }

    /// Whether the environment waits for a learner's action.
    #[must_use]
    pub fn awaits(&self, learner: usize) -> bool {
        self.awaits[learner]
    }

    /// Virtual time in the world.
    #[must_use]
    pub fn now(&self) -> Instant {
        let packets = self.packets.as_ref().map_or(Instant::ZERO, |packets| packets.now);
        self.simulation.as_ref().map_or(packets, Simulation::now)
    }

    /// Sum of packets times links crossed since the reset.
    #[must_use]
    pub fn packet_hops(&self) -> u64 {
        let packets = self.packets.as_ref().map_or(0, |packets| packets.packet_hops);
        self.simulation.as_ref().map_or(packets, |simulation| simulation.work().packet_hops)
    }

    /// Ends the episode and returns the simulation, for its record.
    pub fn take_simulation(&mut self) -> Option<Simulation> {
        match self.packets.take() {
            Some(packets) => packets.finish().simulation,
            None => self.simulation.take(),
        }
    }

    /// A description of the last interval for people, one line per learner.
    #[must_use]
    pub fn describe(&mut self) -> String {
        let now = self.now().as_secs_f64();
        let lines = (0..self.config.learners).map(|learner| {
            let capacity = self.shares[learner].capacity;
            let paths = self.summaries(learner);
            let path = |s: &Summary| {
                format!(
                    "{:.2} Mbit/s, RTT {:.1} ms (least {:.1}), lost {}, cwnd {}",
                    s.throughput,
                    s.rtt * 1e3,
                    s.min_rtt * 1e3,
                    s.lost,
                    s.cwnd
                )
            };
            let paths: Vec<String> = paths.iter().map(path).collect();
            format!("{now:.3} s, learner {learner} of {capacity:.1} Mbit/s: {}\n", paths.join("; "))
        });
        lines.collect()
    }

    /// The measurements of a learner's paths in its last interval.
    pub(crate) fn summaries(&mut self, learner: usize) -> Vec<Summary> {
        match &self.packets {
            Some(packets) => packets.summaries[learner].clone(),
            None => self.controller(learner).summaries().to_vec(),
        }
    }

    fn controller(&mut self, learner: usize) -> &mut PolicyController {
        let simulation = self.simulation.as_mut().expect("reset first");
        let controller: &mut dyn Controller =
            simulation.controller(self.flows[learner]).expect("learners are TCP").as_mut();
        (controller as &mut dyn Any).downcast_mut().expect("reset has set it")
    }

    fn decide(&mut self, learner: usize, action: &[f32]) {
        match self.config.kind {
            Kind::Single | Kind::Subflows => {
                // CUBIC, which replaces a failed policy, draws no random numbers.
                let mut rng = std::mem::replace(&mut self.rng, RngStream::named(0, "environment"));
                let now = self.now();
                self.controller(learner).decide(action, &mut Context { now, rng: &mut rng });
                self.rng = rng;
            }
            Kind::Weights => {
                self.scheduler::<Weighted>(learner).set_weights(weights_of(action));
            }
            Kind::Path => {
                let path = action[0].round().clamp(0.0, self.config.action_limit());
                self.scheduler::<Fixed>(learner).set_path(PathId(path as u16));
            }
            Kind::Packet => {
                let path = action[0].round().clamp(0.0, self.config.action_limit());
                self.packets.as_ref().expect("reset first").answer(learner, PathId(path as u16));
            }
        }
    }

    /// The scheduler of a learner, which may be replaced before the first event.
    pub(crate) fn scheduler_slot(&mut self, learner: usize) -> &mut Box<dyn Scheduler> {
        let simulation = self.simulation.as_mut().expect("reset first");
        simulation.scheduler(self.flows[learner]).expect("several paths")
    }

    fn scheduler<S: Scheduler>(&mut self, learner: usize) -> &mut S {
        let scheduler: &mut dyn Scheduler = self.scheduler_slot(learner).as_mut();
        (scheduler as &mut dyn Any).downcast_mut().expect("draw has set it")
    }

    /// Runs to the next boundary at which a learner has to decide. Returns whether that is the end of the episode.
    pub(crate) fn advance(&mut self, observations: &mut [f32], rewards: &mut [f64], measures: &mut [f64]) -> bool {
        rewards.fill(0.0);
        loop {
            let boundary = (0..self.config.learners).map(|learner| self.controller(learner).boundary()).min();
            let boundary = boundary.unwrap_or(Instant::NEVER);
            let end = self.end;
            let simulation = self.simulation.as_mut().expect("reset first");
            simulation.run_before(boundary.min(end));
            if boundary > end {
                return true;
            }
            let mut is_due = false;
            for learner in 0..self.config.learners {
                let controller = self.controller(learner);
                if controller.boundary() == boundary && controller.is_due() {
                    self.observe(learner, observations, rewards, measures);
                    is_due = true;
                } else if controller.boundary() == boundary {
                    controller.skip();
                }
            }
            if is_due || boundary == end {
                return boundary == end;
            }
        }
    }

    fn observe(&mut self, learner: usize, observations: &mut [f32], rewards: &mut [f64], measures: &mut [f64]) {
        let (len, share) = (self.config.settings.observation_len(), self.shares[learner]);
        let time = self.now().as_secs_f64();
        let controller = self.controller(learner);
        observations[learner * len..][..len].copy_from_slice(controller.observe());
        let group = Summary::of_group(controller.summaries());
        rewards[learner] = self.config.reward.of(&group, &share);
        let measured = |seconds: f64| if seconds > 0.0 { seconds * 1e3 } else { f64::NAN };
        let loss = if group.lost > 0.0 { group.lost / (group.lost + group.acked) } else { 0.0 };
        measures[learner * MEASURES.len()..][..MEASURES.len()].copy_from_slice(&[
            time,
            group.throughput,
            group.send_rate,
            measured(group.rtt),
            measured(group.min_rtt),
            loss,
            group.cwnd,
            share.capacity,
        ]);
        self.awaits[learner] = true;
    }
}
