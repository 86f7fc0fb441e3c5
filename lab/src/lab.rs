//! The lab: kernels, and experiments run on them.

use crate::bed::{self, Keeper};
use crate::guest::Guest;
use crate::host::Host;
use crate::kernel::Kernel;
use crate::network::{ENDS, Network, Place, Recorder, picture};
use crate::packet::payload;
use crate::plan::{Application, Kind, Observed, Plan, Tcp, Traffic, Udp};
use crate::script::script;
use crate::{Error, Generator, summary, support};
use record::Run;
use scenario::model::{self, Experiment, Flow, FlowKind, Route};
use std::path::Path;
use units::{Instant, Span, Stream};

/// So often a run that was disturbed is made again.
const ATTEMPTS: usize = 3;
/// Time between samples where the experiment asks for no series: the RTT is taken from them.
const SAMPLE: Span = Span::from_millis(100);
/// Where a guest sees the run's folder, and where its daemons have their sockets.
const GUEST: &str = "/run/lab";
const SOCKETS: &str = "/run/ropewalk";

/// A kernel to run on.
#[derive(Clone, Debug)]
enum Ground {
    /// User-Mode Linux, one for each run.
    Guest(Kernel),
    /// This machine's own.
    Host(Host),
}

/// Which kernels are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// For each experiment the first that can run it: User-Mode Linux with virtual time, the machine's own, User-Mode Linux
    /// in real time.
    Any,
    /// User-Mode Linux.
    Guest,
    /// The machine's own, in network namespaces.
    Host,
}

/// The kernels there are, and the program that is agent and tunnel daemon.
#[derive(Clone, Debug)]
pub struct Lab {
    grounds: Vec<Ground>,
    program: String,
    agent: String,
    generator: Generator,
    recorder: Option<Recorder>,
}

impl Lab {
    /// The kernels of this machine. `program` is `ropewalk`: with the word `agent` it is the lab's [`crate::agent`], and
    /// with its own words the tunnel's daemon.
    ///
    /// # Errors
    /// There is none of those wanted: why.
    pub fn find(choice: Choice, program: &str, agent: &str) -> Result<Self, Error> {
        let guest = || Kernel::find().map(Ground::Guest);
        let host = || Host::find().map(Ground::Host);
        let grounds = match choice {
            Choice::Guest => vec![guest()?],
            Choice::Host => vec![host()?],
            Choice::Any => match (guest(), host()) {
                (Err(one), Err(other)) => return Err(Error::NoKernel(format!("{one}; and {other}"))),
                // In real time User-Mode Linux carries a tenth of what the machine's own kernel does.
                (Ok(guest), Ok(host)) if !guest.is_virtual() => vec![host, guest],
                (one, other) => one.into_iter().chain(other).collect(),
            },
        };
        let (program, agent) = (program.to_owned(), agent.to_owned());
        Ok(Self { grounds, program, agent, generator: Generator::Agent, recorder: None })
    }

    /// From now on, this makes the traffic.
    ///
    /// # Errors
    /// One of its programs is not there: which.
    pub fn traffic(mut self, generator: Generator) -> Result<Self, Error> {
        self.generator = generator.find()?;
        Ok(self)
    }

    /// From now on, what every host sends and receives is recorded, without payload, and left beside the record.
    ///
    /// # Errors
    /// There is no program that records: which it could be.
    pub fn capture(mut self) -> Result<Self, Error> {
        self.recorder = Some(Recorder::find().map_err(Error::NoKernel)?);
        Ok(self)
    }

    /// The kernels in words, those that these experiments run on, for a record of what was run.
    #[must_use]
    pub fn describe<'a>(&self, experiments: impl IntoIterator<Item = &'a Experiment>) -> String {
        let mut used: Vec<usize> = experiments.into_iter().filter_map(|it| self.ground(it).ok()).collect();
        used.sort_unstable();
        used.dedup();
        let all: Vec<String> = used.iter().map(|at| self.grounds[*at].describe()).collect();
        all.join(", ") + self.generator.describe()
    }

    /// Whether one of the kernels can run this, and which.
    ///
    /// # Errors
    /// The first thing that it cannot do, of each kernel.
    pub fn check(&self, experiment: &Experiment) -> Result<(), Error> {
        self.ground(experiment).map(drop)
    }

    /// What the kernel that it runs on does in its own way, whatever the experiment says.
    #[must_use]
    pub fn notes(&self, experiment: &Experiment) -> Vec<String> {
        self.ground(experiment).map_or(Vec::new(), |at| support::notes(experiment, self.grounds[at].abilities()))
    }

    /// These experiments may run side by side without disturbing each other: their time is virtual.
    #[must_use]
    pub fn is_virtual<'a>(&self, experiments: impl IntoIterator<Item = &'a Experiment>) -> bool {
        experiments.into_iter().all(|it| self.ground(it).is_ok_and(|at| self.grounds[at].is_virtual()))
    }

    /// How the cells of a study are set up: the commands, in order. What only some cells have is preceded by their
    /// numbers, what an event does by its instant.
    #[must_use]
    pub fn script<'a>(&self, cells: impl IntoIterator<Item = &'a Experiment>) -> String {
        let lines = |experiment: &Experiment| {
            let ground = &self.grounds[self.ground(experiment).unwrap_or(0)];
            let place = self.place(ground, "", GUEST);
            let network = Network::new(experiment, &place);
            let events = network.events();
            let events = events.into_iter().map(|(at, line)| format!("at {} s: {line}", at.as_secs_f64()));
            let head = format!("# {}\n{}", ground.describe(), commented(&picture(&network)));
            std::iter::once(head).chain(network.setup()).chain(events).collect()
        };
        let cells: Vec<Vec<String>> = cells.into_iter().map(lines).collect();
        script(&cells)
    }

    /// Runs `experiment`. A kernel draws its own luck: of `seed` come only random
    /// starts, and requests. What the run leaves (commands,
    /// messages, what was observed) goes to the folder `keep`.
    ///
    /// # Errors
    /// The lab cannot do what the experiment asks for, or the run failed.
    pub fn run(&self, experiment: &Experiment, seed: u64, keep: Option<&Path>) -> Result<Run, Error> {
        let ground = &self.grounds[self.ground(experiment)?];
        let mut best: Option<Observed> = None;
        for _ in 0..ATTEMPTS {
            let observed = self.observe(ground, experiment, seed, (keep, best.as_ref()))?;
            let (stolen, length) = (observed.stolen, observed.length);
            let disturbed = stolen.as_secs_f64() > Run::MOST_STOLEN * length.as_secs_f64();
            if best.as_ref().is_none_or(|best| stolen < best.stolen) {
                best = Some(observed);
            }
            if ground.is_virtual() || !disturbed {
                break;
            }
        }
        let place = self.place(ground, "", GUEST);
        let observed = best.expect("there was an attempt");
        let starts: Vec<Instant> = experiment.flows.iter().map(|flow| start(flow, seed)).collect();
        let mut run = summary::summarise(experiment, &Network::new(experiment, &place), seed, &starts, &observed)?;
        if ground.is_virtual() {
            // Nothing takes time there but what waits for it: what the kernel counted is rounding.
            (run.stolen_s, run.cpu) = (Some(0.0), Vec::new());
        }
        Ok(run)
    }

    /// One run at a place of its own. What it leaves is kept unless there was a better run; of one that fails, too.
    fn observe(
        &self,
        ground: &Ground,
        experiment: &Experiment,
        seed: u64,
        (keep, best): (Option<&Path>, Option<&Observed>),
    ) -> Result<Observed, Error> {
        let folder = tempfile::Builder::new().prefix("ropewalk-lab-").tempdir().map_err(Error::guest)?;
        let name = bed::name();
        let agent = [self.program.clone(), self.agent.clone()];
        let words = agent.each_ref().map(String::as_str);
        bed::sweep();
        let _keeper = Keeper::start(&words, &name, Some(folder.path())).map_err(Error::guest)?;
        let seen = match ground {
            Ground::Guest(_) => GUEST.to_owned(),
            Ground::Host(_) => folder.path().display().to_string(),
        };
        let place = self.place(ground, &name, &seen);
        let network = Network::new(experiment, &place);
        let plan = plan(experiment, &network, &place, seed);
        let mut setup = vec![commented(&picture(&network))];
        setup.extend(network.setup());
        let observed = match ground {
            Ground::Guest(kernel) => Guest::new(kernel, folder.path()).run(&agent, &setup, &plan),
            Ground::Host(_) => Host::run(&agent, folder.path(), &setup, &plan),
        };
        let is_better = |seen: &Observed| best.is_none_or(|best| seen.stolen < best.stolen);
        if let Some(keep) = keep.filter(|_| observed.as_ref().map_or(true, is_better)) {
            copy(folder.path(), keep).map_err(Error::guest)?;
        }
        observed
    }

    /// The first kernel that can run this; or what each of them lacks, by the key of the first.
    fn ground(&self, experiment: &Experiment) -> Result<usize, Error> {
        let mut lacks: Vec<(String, String)> = Vec::new();
        for (at, ground) in self.grounds.iter().enumerate() {
            let abilities = ground.abilities();
            match support::check(experiment, abilities).and_then(|()| self.generator.check(experiment, abilities)) {
                Ok(()) => return Ok(at),
                Err(Error::Lacks { key, what }) => lacks.push((key, what)),
                Err(other) => return Err(other),
            }
        }
        let (key, what) = lacks.first().cloned().expect("a lab has a kernel");
        if lacks.iter().all(|(_, other)| *other == what) {
            return Err(Error::Lacks { key, what });
        }
        let each = self.grounds.iter().zip(&lacks).map(|(ground, (_, what))| format!("{what} ({})", ground.describe()));
        Err(Error::Lacks { key, what: each.collect::<Vec<_>>().join(", nor ") })
    }

    fn place(&self, ground: &Ground, name: &str, folder: &str) -> Place {
        let program = quoted(&self.program);
        let (prefix, sockets) = match ground {
            Ground::Guest(_) => (String::new(), SOCKETS.to_owned()),
            Ground::Host(_) => (format!("{name}-"), folder.to_owned()),
        };
        // A timer that fires late costs capacity that only a deeper bucket gives back; in virtual time none does.
        let burst = if ground.is_virtual() { 1 } else { 2 };
        let agent = format!("{program} {}", self.agent);
        let (netem, generator, recorder) = (ground.abilities().netem, self.generator, self.recorder);
        Place { prefix, folder: folder.to_owned(), sockets, program, agent, netem, burst, generator, recorder }
    }
}

impl Ground {
    fn describe(&self) -> String {
        match self {
            Self::Guest(kernel) => {
                let clock = if kernel.is_virtual { "virtual" } else { "real" };
                format!("Linux {} (User-Mode Linux, {clock} time)", kernel.version)
            }
            Self::Host(host) => format!("Linux {} (network namespaces)", host.version),
        }
    }

    fn abilities(&self) -> &support::Abilities {
        match self {
            Self::Guest(kernel) => &kernel.abilities,
            Self::Host(host) => &host.abilities,
        }
    }

    fn is_virtual(&self) -> bool {
        matches!(self, Self::Guest(kernel) if kernel.is_virtual)
    }
}

fn plan(experiment: &Experiment, network: &Network<'_>, place: &Place, seed: u64) -> Plan {
    let span = |at: Instant| at.since(Instant::ZERO);
    let traffic = |(k, flow): (usize, &Flow)| Traffic {
        start: span(start(flow, seed)),
        stop: flow.stop.map(span),
        sides: network.sides(k),
        kind: kind(experiment, network, k, seed),
    };
    let processes = |end: &str| (format!("tunnel {end}"), format!("{}/{end}.pid", place.folder));
    Plan {
        duration: experiment.duration,
        sample: experiment.sample.unwrap_or(SAMPLE),
        flows: experiment.flows.iter().enumerate().map(traffic).collect(),
        events: network.events(),
        counters: (0..experiment.paths.len()).flat_map(|p| network.counters(p)).collect(),
        processes: experiment.tunnel.iter().flat_map(|_| ENDS.map(processes)).collect(),
        statuses: network.statuses(),
        silence: network.silence(),
        drain: network.drain(),
        totals: network.totals(),
        last: network.last(),
    }
}

/// What flow `k` is.
fn kind(experiment: &Experiment, network: &Network<'_>, k: usize, seed: u64) -> Kind {
    let flow = &experiment.flows[k];
    let payload = payload(experiment, flow);
    let (congestion, application, size) = match &flow.kind {
        FlowKind::Tcp { congestion, application, size, .. } => (congestion, application, *size),
        FlowKind::ConstantRate { rate, packet } => {
            return Kind::Udp(Udp { interval: rate.time_for(u64::from(*packet)), packet: *packet, payload });
        }
    };
    let application = match application {
        model::Application::Greedy => network.tool(k, start(flow, seed)).map_or(Application::Greedy, Application::Tool),
        model::Application::Steady { rate, write } => {
            Application::Steady { rate: *rate, write: write.unwrap_or(u64::from(payload)) }
        }
        model::Application::Requests(requests) => {
            Application::Requests { requests: *requests, seed, name: flow.name.clone() }
        }
        model::Application::Video(_) => unreachable!("refused by `check`"),
    };
    let subflows = (flow.route == Route::Subflows).then(|| network.subflows(k));
    Kind::Tcp(Tcp { congestion: congestion.name.clone(), application, size, subflows })
}

/// When a flow begins: drawn as the simulator draws it.
fn start(flow: &Flow, seed: u64) -> Instant {
    flow.start + Span(Stream::named(seed, &format!("flow {} start", flow.name)).below(flow.start_within.0 + 1))
}

fn commented(text: &str) -> String {
    text.lines().map(|line| format!("# {line}")).collect::<Vec<_>>().join("\n")
}

/// A word for the shell.
pub(crate) fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// What is worth keeping of a run: plain files, without secrets.
fn copy(from: &Path, to: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let secret = entry.path().extension().is_some_and(|it| it == "key");
        if entry.file_type()?.is_file() && !secret {
            std::fs::copy(entry.path(), to.join(entry.file_name()))?;
        }
    }
    Ok(())
}
