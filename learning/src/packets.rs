//! A scheduler's decisions packet by packet: the run that asks for each choice.
//!
//! A simulator calls its scheduler in the middle of an event. So the run has a thread, which waits there for the answer:
//! at any time either the run or its caller proceeds, and the order of events does not depend on threads.

use crate::environment::{Environment, MEASURES};
use policy::{CONNECTION_FEATURES, PATH_FEATURES, PacketRule, Summary, observe_packet};
use schedule::{Pick, Scheduler, SchedulerView};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::thread::JoinHandle;
use units::{Instant, PathId};

/// The smallest and the largest possible value of each number of an observation.
pub(crate) fn observation_range(paths: usize) -> Vec<[f32; 2]> {
    let of_path = PATH_FEATURES.map(|feature| [0.0, if feature.unit.is_empty() { 1.0 } else { f32::INFINITY }]);
    let mut ranges = of_path.repeat(paths);
    ranges.extend(CONNECTION_FEATURES.map(|_| [0.0, f32::INFINITY]));
    ranges
}

/// What the run tells its caller.
#[derive(Debug)]
enum Message {
    /// A learner has to choose.
    Asked { learner: usize, now: Instant, observation: Vec<f32> },
    /// An interval has ended: rewards, measures and summaries of all learners, and the packet hops so far.
    Measured { rewards: Vec<f64>, measures: Vec<f64>, summaries: Vec<Vec<Summary>>, packet_hops: u64 },
    /// The episode is over.
    Ended,
}

/// A scheduler that asks for the path of each packet. If nobody answers any more, it does as `minrtt`.
#[derive(Debug)]
struct Asking {
    learner: usize,
    questions: Sender<Message>,
    answers: Mutex<Receiver<PathId>>, // a scheduler is Sync; nothing ever waits for the lock
    rule: PacketRule,
}

impl Scheduler for Asking {
    fn pick(&mut self, view: &SchedulerView<'_>) -> Option<Pick> {
        let Self { learner, questions, answers, rule } = self;
        rule.pick(view, |view| {
            let observation = observe_packet(view, view.paths.len());
            questions.send(Message::Asked { learner: *learner, now: view.now, observation }).ok()?;
            answers.get_mut().unwrap_or_else(PoisonError::into_inner).recv().ok()
        })
    }
}

/// A run whose packets are scheduled from outside.
#[derive(Debug)]
pub(crate) struct PacketRun {
    messages: Receiver<Message>,
    /// One per learner; none once the run is to end.
    answers: Vec<Sender<PathId>>,
    thread: Option<JoinHandle<Environment>>,
    is_over: bool,
    /// The time of the last choice.
    pub(crate) now: Instant,
    /// Packets times links crossed up to the last interval.
    pub(crate) packet_hops: u64,
    /// The paths in the last interval, per learner.
    pub(crate) summaries: Vec<Vec<Summary>>,
}

impl PacketRun {
    /// Begins a run whose simulation has not been advanced yet.
    pub(crate) fn begin(mut environment: Environment) -> Self {
        let (questions, messages) = channel();
        let mut answers = Vec::new();
        for learner in 0..environment.config().learners {
            let (answer, received) = channel();
            answers.push(answer);
            let (questions, received) = (questions.clone(), Mutex::new(received));
            let asking = Asking { learner, questions, answers: received, rule: PacketRule::default() };
            *environment.scheduler_slot(learner) = Box::new(asking);
        }
        let learners = answers.len();
        let thread = std::thread::spawn(move || {
            measure(&mut environment, &questions);
            environment
        });
        let summaries = vec![Vec::new(); learners];
        let (thread, now) = (Some(thread), Instant::ZERO);
        Self { messages, answers, thread, is_over: false, now, packet_hops: 0, summaries }
    }

    /// The path of the packet that a learner has been asked for.
    pub(crate) fn answer(&self, learner: usize, path: PathId) {
        // The run has not ended: it waits for this answer.
        let _ = self.answers[learner].send(path);
    }

    /// Waits for the next choice. Adds rewards and writes measures of the intervals until then, and the observation and
    /// the time of the learner that has to choose, which it returns; none at the end of the episode.
    ///
    /// # Panics
    /// If the run has panicked.
    pub(crate) fn next(
        &mut self,
        observations: &mut [f32],
        rewards: &mut [f64],
        measures: &mut [f64],
    ) -> Option<usize> {
        while !self.is_over {
            match self.messages.recv() {
                Ok(Message::Asked { learner, now, observation }) => {
                    observations[learner * observation.len()..][..observation.len()].copy_from_slice(&observation);
                    measures[learner * MEASURES.len()] = now.as_secs_f64();
                    self.now = now;
                    return Some(learner);
                }
                Ok(Message::Measured { rewards: new, measures: row, summaries, packet_hops }) => {
                    rewards.iter_mut().zip(new).for_each(|(sum, reward)| *sum += reward);
                    measures.copy_from_slice(&row);
                    (self.summaries, self.packet_hops) = (summaries, packet_hops);
                }
                Ok(Message::Ended) | Err(_) => self.is_over = true,
            }
        }
        None
    }

    /// Ends the run, at once if the episode is not over, and returns its environment.
    ///
    /// # Panics
    /// If the run has panicked.
    pub(crate) fn finish(mut self) -> Environment {
        self.end().expect("it has a thread until its end")
    }

    fn end(&mut self) -> Option<Environment> {
        self.answers.clear();
        self.messages = channel().1; // nobody listens any more
        match self.thread.take()?.join() {
            Ok(environment) => Some(environment),
            Err(panic) if !std::thread::panicking() => std::panic::resume_unwind(panic),
            Err(_) => None,
        }
    }
}

impl Drop for PacketRun {
    fn drop(&mut self) {
        self.end();
    }
}

/// Runs to the end of the episode, interval by interval, unless nobody listens any more.
fn measure(environment: &mut Environment, messages: &Sender<Message>) {
    let (learners, len) = (environment.config().learners, environment.config().settings.observation_len());
    let (mut observations, mut measures) = (vec![0.0; learners * len], environment.no_measures());
    let (mut is_first, mut is_over) = (true, false);
    while !is_over {
        let mut rewards = vec![0.0; learners];
        is_over = environment.advance(&mut observations, &mut rewards, &mut measures);
        if std::mem::take(&mut is_first) {
            rewards.fill(0.0); // as in other environments, whose first decision follows that interval
        }
        let summaries = (0..learners).map(|learner| environment.summaries(learner)).collect();
        let packet_hops = environment.packet_hops();
        if messages.send(Message::Measured { rewards, measures: measures.clone(), summaries, packet_hops }).is_err() {
            return;
        }
    }
    let _ = messages.send(Message::Ended);
}
