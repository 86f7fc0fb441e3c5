//! One world, advanced from decision to decision.

use crate::config::{Config, Kind};
use crate::world::draw;
use control::{Context, Controller};
use policy::{PolicyController, Share, Summary};
use schedule::{Scheduler, Weighted};
use sim::Simulation;
use std::any::Any;
use std::sync::Arc;
use units::{Instant, Rate, RngStream};

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

/// The reference weight of the `weighted` scheduler, Mbit/s: the largest weight is 8 times this, the smallest an
/// eighth. Only ratios matter.
const MEAN_WEIGHT: f64 = 10.0;

/// A world whose policy runs outside the simulation.
#[derive(Debug)]
pub struct Environment {
    config: Arc<Config>,
    simulation: Option<Simulation>,
    share: Share,
    end: Instant,
    /// Per learner: whether its interval has been closed and its action is due.
    awaits: Vec<bool>,
    has_record: bool,
    rng: RngStream,
}

/// The seed of episode `number` (from 0) of an environment that was seeded with `seed`. Episode 0 has the seed itself.
#[must_use]
pub fn episode_seed(seed: u64, number: u64) -> u64 {
    if number == 0 { seed } else { RngStream::named(seed, &format!("episode {number}")).bits() }
}

impl Environment {
    /// A new environment, before its first episode.
    #[must_use]
    pub fn new(config: Arc<Config>) -> Self {
        Self {
            awaits: vec![false; config.learners],
            config,
            simulation: None,
            share: Share::default(),
            has_record: false,
            end: Instant::ZERO,
            rng: RngStream::named(0, "environment"),
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
        let mut simulation = Simulation::new(&world.experiment, seed).expect("the configuration was checked");
        if !self.has_record {
            simulation.leave_out_distributions();
        }
        for learner in 0..self.config.learners {
            let controller = PolicyController::from_outside(self.config.settings.clone());
            *simulation.controller(learner).expect("learners are TCP") = Box::new(controller);
        }
        (self.share, self.end) = (world.share, simulation.end());
        self.simulation = Some(simulation);
        self.awaits.fill(false);
        observations.fill(0.0);
        self.advance(observations, &mut vec![0.0; self.config.learners], measures);
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
        self.advance(observations, rewards, measures)
    }

    /// Whether the environment waits for a learner's action.
    #[must_use]
    pub fn awaits(&self, learner: usize) -> bool {
        self.awaits[learner]
    }

    /// Virtual time in the world.
    #[must_use]
    pub fn now(&self) -> Instant {
        self.simulation.as_ref().map_or(Instant::ZERO, Simulation::now)
    }

    /// Sum of packets times links crossed since the reset.
    #[must_use]
    pub fn packet_hops(&self) -> u64 {
        self.simulation.as_ref().map_or(0, |simulation| simulation.work().packet_hops)
    }

    /// Ends the episode and returns the simulation, for its record.
    pub fn take_simulation(&mut self) -> Option<Simulation> {
        self.simulation.take()
    }

    /// A description of the last interval for people, one line per learner.
    #[must_use]
    pub fn describe(&mut self) -> String {
        let now = self.now().as_secs_f64();
        let capacity = self.share.capacity;
        let lines = (0..self.config.learners).map(|learner| {
            let paths = self.controller(learner).summaries().to_vec();
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

    fn controller(&mut self, learner: usize) -> &mut PolicyController {
        let simulation = self.simulation.as_mut().expect("reset first");
        let controller: &mut dyn Controller = simulation.controller(learner).expect("learners are TCP").as_mut();
        (controller as &mut dyn Any).downcast_mut().expect("reset has set it")
    }

    fn decide(&mut self, learner: usize, action: &[f32]) {
        // CUBIC, which replaces a failed policy, draws no random numbers.
        let mut rng = std::mem::replace(&mut self.rng, RngStream::named(0, "environment"));
        let now = self.now();
        let mut cx = Context { now, rng: &mut rng };
        if self.config.kind != Kind::Weights {
            self.controller(learner).decide(action, &mut cx);
        } else {
            let weight = |a: &f32| MEAN_WEIGHT * libm::exp2(3.0 * f64::from(a.clamp(-1.0, 1.0)));
            let weights = action.iter().map(|a| Rate::from_bits((weight(a) * 1e6) as u64)).collect();
            let simulation = self.simulation.as_mut().expect("reset first");
            let scheduler: &mut dyn Scheduler = simulation.scheduler(learner).expect("an MPTCP flow").as_mut();
            let weighted: &mut Weighted = (scheduler as &mut dyn Any).downcast_mut().expect("draw has set it");
            weighted.set_weights(weights);
        }
        self.rng = rng;
    }

    /// Runs to the next boundary at which a learner has to decide. Returns whether that is the end of the episode.
    fn advance(&mut self, observations: &mut [f32], rewards: &mut [f64], measures: &mut [f64]) -> bool {
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
        let (len, share) = (self.config.observation_len(), self.share);
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
