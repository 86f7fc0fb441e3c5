//! Many environments, stepped by threads, with Gymnasium's autoreset.

use crate::config::{Config, ConfigError};
use crate::environment::{Environment, Episode, MEASURES, episode_seed};
use crate::world::{World, draw_unprepared};
use record::Run;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

/// Environments with their own worlds. When an episode has ended, the next step resets its environment and ignores the
/// action for it: Gymnasium's `AutoresetMode.NEXT_STEP`.
#[derive(Debug)]
pub struct Batch {
    config: Arc<Config>,
    /// The chunk of the calling thread, then those of the workers.
    chunks: Vec<Option<Chunk>>,
    workers: Vec<Worker>,
}

/// The output buffers of a batch: one row per environment.
#[derive(Debug)]
pub struct Outputs<'a> {
    /// Shape of a row: learners x numbers of an observation.
    pub observations: &'a mut [f32],
    /// Shape of a row: learners.
    pub rewards: &'a mut [f64],
    /// Shape of a row: 1.
    pub truncated: &'a mut [bool],
    /// Shape of a row: learners x [`MEASURES`].
    pub measures: &'a mut [f64],
}

/// An action that is not a finite number. Training has to stop there: a policy in a tunnel would be replaced by CUBIC, and
/// its rewards would be CUBIC's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ActionError {
    /// Environment.
    pub world: usize,
    /// Learning flow in it.
    pub learner: usize,
    /// Number of the action: the path.
    pub path: usize,
    /// Steps of the episode before this one.
    pub step: usize,
    /// The number.
    pub value: f32,
}

/// An environment's episode as what leads to it again.
#[derive(Clone, Debug, PartialEq)]
pub struct Saved {
    /// The text of the configuration when the episode began; empty before the first.
    pub config: String,
    /// The environment's seed.
    pub seed: u64,
    /// Number of the episode.
    pub episode: u64,
    /// Whether the episode is over.
    pub is_over: bool,
    /// The actions so far.
    pub actions: Vec<f32>,
}

#[derive(Debug)]
struct Member {
    environment: Environment,
    seed: u64,
    episode: u64,
    resets_next: bool,
    /// The configuration when the episode began.
    drawn: Option<Arc<Config>>,
    /// The actions of the episode, in which a step has a row.
    actions: Vec<f32>,
}

/// Environments that one thread steps, with the buffers that travel between the threads.
#[derive(Debug)]
struct Chunk {
    members: Vec<Member>,
    actions: Vec<f32>,
    observations: Vec<f32>,
    rewards: Vec<f64>,
    truncated: Vec<bool>,
    measures: Vec<f64>,
}

#[derive(Debug)]
struct Worker {
    jobs: Option<Sender<Chunk>>,
    results: Receiver<Chunk>,
    thread: Option<JoinHandle<()>>,
}

impl Member {
    fn step(&mut self, actions: &[f32], out: &mut Outputs<'_>) {
        out.truncated[0] = false;
        if std::mem::take(&mut self.resets_next) {
            self.episode += 1;
            out.rewards.fill(0.0);
            return self.begin(out.observations, out.measures);
        }
        self.actions.extend_from_slice(actions);
        self.resets_next = self.environment.step(actions, out.observations, out.rewards, out.measures);
        out.truncated[0] = self.resets_next;
    }
}

impl Member {
    /// Begins the episode of seed and number.
    fn begin(&mut self, observations: &mut [f32], measures: &mut [f64]) {
        self.resets_next = false;
        self.actions.clear();
        self.drawn = Some(Arc::clone(self.environment.config()));
        self.environment.reset(self.episode_seed(), observations, measures);
    }

    fn episode_seed(&self) -> u64 {
        episode_seed(self.seed, self.episode)
    }

    fn save(&self) -> Saved {
        Saved {
            config: self.drawn.as_ref().map_or_else(String::new, |config| config.text.to_string()),
            seed: self.seed,
            episode: self.episode,
            is_over: self.resets_next,
            actions: self.actions.clone(),
        }
    }

    /// Repeats a saved episode up to where it was.
    fn repeat(&mut self, saved: &Saved, now: &Arc<Config>) -> Result<(), ConfigError> {
        let drawn = if *saved.config == *now.text { Arc::clone(now) } else { Arc::new(Config::parse(&saved.config)?) };
        let learners = drawn.learners;
        let mut observations = vec![0.0; learners * drawn.observation_len()];
        let (mut rewards, mut measures) = (vec![0.0; learners], vec![0.0; learners * MEASURES.len()]);
        (self.seed, self.episode) = (saved.seed, saved.episode);
        let row = learners * drawn.action_len();
        self.environment.set_config(drawn);
        self.begin(&mut observations, &mut measures);
        for actions in saved.actions.chunks_exact(row) {
            self.environment.step(actions, &mut observations, &mut rewards, &mut measures);
        }
        self.environment.set_config(Arc::clone(now));
        self.actions.clone_from(&saved.actions);
        self.resets_next = saved.is_over;
        Ok(())
    }
}

impl Chunk {
    /// A chunk, with buffers if it belongs to a worker. The calling thread writes to its caller's buffers.
    fn new(config: &Config, members: Vec<Member>, is_workers: bool) -> Self {
        let rows = if is_workers { members.len() * config.learners } else { 0 };
        Self {
            actions: vec![0.0; rows * config.action_len()],
            observations: vec![0.0; rows * config.observation_len()],
            rewards: vec![0.0; rows],
            truncated: vec![false; rows / config.learners],
            measures: vec![0.0; rows * MEASURES.len()],
            members,
        }
    }

    fn step(&mut self) {
        let actions = std::mem::take(&mut self.actions);
        let mut out = Outputs {
            observations: &mut self.observations,
            rewards: &mut self.rewards,
            truncated: &mut self.truncated,
            measures: &mut self.measures,
        };
        step_all(&mut self.members, &actions, &mut out);
        self.actions = actions;
    }
}

fn step_all(members: &mut [Member], actions: &[f32], out: &mut Outputs<'_>) {
    let Some(config) = members.first().map(|member| Arc::clone(member.environment.config())) else { return };
    let (learners, numbers) = (config.learners, config.learners * config.observation_len());
    let rows = members.iter_mut().zip(actions.chunks_exact(learners * config.action_len()));
    let rows = rows.zip(out.observations.chunks_exact_mut(numbers)).zip(out.rewards.chunks_exact_mut(learners));
    let rows =
        rows.zip(out.truncated.chunks_exact_mut(1)).zip(out.measures.chunks_exact_mut(learners * MEASURES.len()));
    for (((((member, action), observations), rewards), truncated), measures) in rows {
        member.step(action, &mut Outputs { observations, rewards, truncated, measures });
    }
}

impl Worker {
    fn spawn() -> Self {
        let (jobs, to_do) = channel::<Chunk>();
        let (done, results) = channel();
        let thread = std::thread::spawn(move || {
            for mut chunk in to_do {
                chunk.step();
                if done.send(chunk).is_err() {
                    return;
                }
            }
        });
        Self { jobs: Some(jobs), results, thread: Some(thread) }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            // A worker that panicked has printed its message.
            let _ = thread.join();
        }
    }
}

impl Batch {
    /// `count` environments, stepped by at most `threads` threads, the calling one included.
    #[must_use]
    pub fn new(config: Config, count: usize, threads: usize) -> Self {
        let config = Arc::new(config);
        let threads = threads.clamp(1, count.max(1));
        let member = |_| Member {
            environment: Environment::new(Arc::clone(&config)),
            seed: 0,
            episode: 0,
            resets_next: true,
            drawn: None,
            actions: Vec::new(),
        };
        let mut members: Vec<Member> = (0..count).map(member).collect();
        let mut chunks = Vec::new();
        for thread in (0..threads).rev() {
            let share = members.split_off(count * thread / threads);
            chunks.push(Some(Chunk::new(&config, share, thread > 0)));
        }
        chunks.reverse();
        Self { config, chunks, workers: (1..threads).map(|_| Worker::spawn()).collect() }
    }

    /// The configuration.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Takes over the ranges of another configuration for later episodes.
    ///
    /// # Errors
    /// The number of observations, actions or learners differs.
    pub fn set_config(&mut self, config: Config) -> Result<(), String> {
        let sizes = |config: &Config| [config.learners, config.observation_len(), config.action_len()];
        if sizes(&config) != sizes(&self.config) {
            return Err("the worlds may change, but not the number of learners, observations and actions".to_owned());
        }
        self.config = Arc::new(config);
        for member in self.chunks.iter_mut().flatten().flat_map(|chunk| &mut chunk.members) {
            member.environment.set_config(Arc::clone(&self.config));
        }
        Ok(())
    }

    /// Number of environments.
    #[must_use]
    pub fn len(&self) -> usize {
        self.members().count()
    }

    /// Whether there are no environments.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Environment `index`.
    pub fn environment(&mut self, index: usize) -> Option<&mut Environment> {
        let members = self.chunks.iter_mut().flatten().flat_map(|chunk| &mut chunk.members);
        members.map(|member| &mut member.environment).nth(index)
    }

    /// Begins an episode in the environments of the mask, either with a new seed or as the next episode of the previous
    /// seed. The rows of the other environments are not written.
    ///
    /// # Panics
    /// If a slice does not have a row for each environment.
    pub fn reset(&mut self, seeds: &[Option<u64>], mask: &[bool], out: &mut Outputs<'_>) {
        let learners = self.config.learners;
        let numbers = learners * self.config.observation_len();
        let members = self.chunks.iter_mut().flatten().flat_map(|chunk| &mut chunk.members);
        for (index, member) in members.enumerate().filter(|(index, _)| mask[*index]) {
            (member.seed, member.episode) = match seeds[index] {
                Some(seed) => (seed, 0),
                None => (member.seed, member.episode + 1),
            };
            let observations = &mut out.observations[index * numbers..][..numbers];
            let measures = &mut out.measures[index * learners * MEASURES.len()..][..learners * MEASURES.len()];
            member.begin(observations, measures);
        }
    }

    /// Checks that all actions of a step are finite: one row per environment.
    ///
    /// # Errors
    /// The first action that is not.
    pub fn check(&self, actions: &[f32]) -> Result<(), ActionError> {
        let Some(index) = actions.iter().position(|value| !value.is_finite()) else { return Ok(()) };
        let (paths, learners) = (self.config.action_len(), self.config.learners);
        let row = learners * paths;
        let world = index / row;
        let step = self.members().nth(world).map_or(0, |member| member.actions.len() / row);
        Err(ActionError { world, learner: index % row / paths, path: index % paths, step, value: actions[index] })
    }

    /// The world of an environment's episode, as [`draw_unprepared`] gives it; none before the first.
    #[must_use]
    pub fn world(&self, index: usize) -> Option<World> {
        let member = self.members().nth(index)?;
        Some(draw_unprepared(member.drawn.as_ref()?, member.episode_seed()))
    }

    /// The record of an environment's episode, which is repeated for it; none before the end of the episode.
    #[must_use]
    pub fn record(&self, index: usize) -> Option<Run> {
        let member = self.members().nth(index).filter(|member| member.resets_next)?;
        Some(Environment::record(member.drawn.as_ref()?, &member.actions, member.episode_seed()))
    }

    /// The episode with a classical algorithm instead of the policy, in the world of a seed; without a seed, in that of an
    /// environment's episode, or of seed 0 before the first.
    ///
    /// # Errors
    /// As [`Environment::baseline`].
    pub fn baseline(&self, index: usize, name: Option<&str>, seed: Option<u64>) -> Result<Episode, ConfigError> {
        let member = self.members().nth(index).expect("an environment of the batch");
        let drawn = member.drawn.as_ref().unwrap_or(&self.config);
        Environment::baseline(drawn, name, seed.unwrap_or_else(|| member.episode_seed()))
    }

    /// The episodes of all environments, as what leads to them again.
    #[must_use]
    pub fn save(&self) -> Vec<Saved> {
        self.members().map(Member::save).collect()
    }

    /// Repeats saved episodes up to where they were; environments before their first episode stay so.
    ///
    /// # Errors
    /// A configuration that cannot be read (any more).
    pub fn restore(&mut self, saved: &[Saved]) -> Result<(), ConfigError> {
        let config = Arc::clone(&self.config);
        let members = self.chunks.iter_mut().flatten().flat_map(|chunk| &mut chunk.members);
        let begun = members.zip(saved).filter(|(_, saved)| !saved.config.is_empty());
        begun.into_iter().try_for_each(|(member, saved)| member.repeat(saved, &config))
    }

    /// Number of threads, the calling one included.
    #[must_use]
    pub fn threads(&self) -> usize {
        self.workers.len() + 1
    }

    fn members(&self) -> impl Iterator<Item = &Member> {
        self.chunks.iter().flatten().flat_map(|chunk| &chunk.members)
    }

    /// Steps every environment: takes its row of `actions`, writes its rows of `out`.
    ///
    /// # Panics
    /// If a slice does not have a row for each environment.
    pub fn step(&mut self, actions: &[f32], out: &mut Outputs<'_>) {
        let [observation, learners] = [self.config.learners * self.config.observation_len(), self.config.learners];
        let (action, measure) = (learners * self.config.action_len(), learners * MEASURES.len());
        let (first, others) = self.chunks.split_first_mut().expect("there is one");
        let first = first.as_mut().expect("only workers take chunks");
        let own = first.members.len();
        let mut start = own;
        for (worker, slot) in self.workers.iter().zip(others.iter_mut()) {
            let mut chunk = slot.take().expect("it has come back");
            let count = chunk.members.len();
            chunk.actions.copy_from_slice(&actions[start * action..][..count * action]);
            start += count;
            let jobs = worker.jobs.as_ref().expect("open until the worker is dropped");
            jobs.send(chunk).expect("a worker ends with its batch");
        }
        let (own_observations, observations) = out.observations.split_at_mut(own * observation);
        let (own_rewards, rewards) = out.rewards.split_at_mut(own * learners);
        let (own_truncated, truncated) = out.truncated.split_at_mut(own);
        let (own_measures, measures) = out.measures.split_at_mut(own * measure);
        let mut own = Outputs {
            observations: own_observations,
            rewards: own_rewards,
            truncated: own_truncated,
            measures: own_measures,
        };
        step_all(&mut first.members, actions, &mut own);
        let mut start = 0;
        for (worker, slot) in self.workers.iter().zip(others) {
            let chunk = worker.results.recv().expect("a worker ends with its batch");
            let count = chunk.members.len();
            observations[start * observation..][..count * observation].copy_from_slice(&chunk.observations);
            rewards[start * learners..][..count * learners].copy_from_slice(&chunk.rewards);
            truncated[start..][..count].copy_from_slice(&chunk.truncated);
            measures[start * measure..][..count * measure].copy_from_slice(&chunk.measures);
            start += count;
            *slot = Some(chunk);
        }
    }

    /// Sum of packets times links crossed, in the current episodes.
    #[must_use]
    pub fn packet_hops(&self) -> u64 {
        self.members().map(|member| member.environment.packet_hops()).sum()
    }
}
