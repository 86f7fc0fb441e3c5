//! The lab: runs experiments on kernels.

use crate::backend::{Backend, BackendChoice};
use crate::guest::Guest;
use crate::guest_kernel::GuestKernel;
use crate::host_kernel::HostKernel;
use crate::network::{CaptureProgram, ENDS, Environment, Network, draw_topology};
use crate::packet_size::payload;
use crate::programs::Hold;
use crate::protocol::{Application, FlowSpec, Plan, RunResults, TcpSpec, Transport, UdpSpec};
use crate::script::script;
use crate::shell::commented;
use crate::testbed::{self, Reaper};
use crate::{Error, Generator, mptcp, summary, support};
use record::Run;
use scenario::model::{self, Experiment, Flow, FlowKind, Route};
use std::path::Path;
use strings::shell_quoted;
use units::{Instant, RngStream, Span};

/// Number of attempts of a run that is disturbed.
const ATTEMPTS: usize = 3;
/// The sampling interval of an experiment without series, whose RTT is taken from samples.
const SAMPLE: Span = Span::from_millis(100);
/// The run's folder in a guest, and the folder of its daemons' sockets.
const GUEST: &str = "/run/lab";
const SOCKETS: &str = "/run/ropewalk";

/// The available kernels, and the program that is agent and tunnel daemon.
#[derive(Clone, Debug)]
pub struct Lab {
    backends: Vec<Backend>,
    program: String,
    agent: String,
    generator: Generator,
    capture_program: Option<CaptureProgram>,
}

impl Lab {
    /// The kernels of this machine. `program` is `ropewalk`: with the command `agent` it is the lab's [`crate::agent`], and
    /// with its other commands the tunnel's daemon.
    ///
    /// # Errors
    /// None of the wanted kernels is available; the error gives the reason.
    pub fn find(choice: BackendChoice, program: &str, agent: &str) -> Result<Self, Error> {
        let guest = || GuestKernel::find().map(Backend::Guest);
        let host = || HostKernel::find().map(Backend::Netns);
        let backends = match choice {
            BackendChoice::Uml => vec![guest()?],
            BackendChoice::Netns => vec![host()?],
            BackendChoice::Any => match (guest(), host()) {
                (Err(guest_error), Err(host_error)) => {
                    return Err(Error::NoKernel(format!("{guest_error}; and {host_error}")));
                }
                // In real time User-Mode Linux carries a tenth of the traffic that the machine's own kernel does.
                (Ok(guest), Ok(host)) if !guest.is_virtual() => vec![host, guest],
                (guest, host) => guest.into_iter().chain(host).collect(),
            },
        };
        let (program, agent) = (program.to_owned(), agent.to_owned());
        Ok(Self { backends, program, agent, generator: Generator::Agent, capture_program: None })
    }

    /// Sets the generator of the traffic.
    ///
    /// # Errors
    /// One of its programs is missing; the error names it.
    pub fn traffic(mut self, generator: Generator) -> Result<Self, Error> {
        self.generator = generator.find()?;
        Ok(self)
    }

    /// Also captures the headers of all packets that hosts send and receive.
    ///
    /// # Errors
    /// There is no program for captures; the error lists the supported ones.
    pub fn capture(mut self) -> Result<Self, Error> {
        self.capture_program = Some(CaptureProgram::find().map_err(Error::NoKernel)?);
        Ok(self)
    }

    /// Describes the kernels that these experiments run on, for the record.
    #[must_use]
    pub fn describe<'a>(&self, experiments: impl IntoIterator<Item = &'a Experiment>) -> String {
        let mut used: Vec<usize> =
            experiments.into_iter().filter_map(|experiment| self.backend(experiment).ok()).collect();
        used.sort_unstable();
        used.dedup();
        let descriptions: Vec<String> = used.iter().map(|index| self.backends[*index].describe()).collect();
        descriptions.join(", ") + self.generator.describe()
    }

    /// Checks that a kernel can run the experiment.
    ///
    /// # Errors
    /// For each kernel, the first feature that it lacks.
    pub fn check(&self, experiment: &Experiment) -> Result<(), Error> {
        self.backend(experiment).map(drop)
    }

    /// Notes on settings of the experiment that its kernel does not apply.
    #[must_use]
    pub fn notes(&self, experiment: &Experiment) -> Vec<String> {
        self.backend(experiment)
            .map_or(Vec::new(), |backend_index| support::notes(experiment, self.backends[backend_index].capabilities()))
    }

    /// Whether all these experiments run in virtual time, and so side by side without disturbing each other.
    #[must_use]
    pub fn is_virtual<'a>(&self, experiments: impl IntoIterator<Item = &'a Experiment>) -> bool {
        experiments
            .into_iter()
            .all(|experiment| self.backend(experiment).is_ok_and(|index| self.backends[index].is_virtual()))
    }

    /// The commands that set up the cells of a study, in order. Lines that only some cells have are preceded by the
    /// cells' numbers, those of events by their instants.
    #[must_use]
    pub fn script<'a>(&self, cells: impl IntoIterator<Item = &'a Experiment>) -> String {
        let lines = |experiment: &Experiment| {
            let backend = &self.backends[self.backend(experiment).unwrap_or(0)];
            let environment = self.environment(backend, "", GUEST);
            let experiment = backend.capabilities().with_kernel_names(experiment);
            let network = Network::new(&experiment, &environment);
            let events = network.events();
            let events = events.into_iter().map(|(time, line)| format!("at {} s: {line}", time.as_secs_f64()));
            let heading = format!("# {}\n{}", backend.describe(), commented(&draw_topology(&network)));
            std::iter::once(heading).chain(network.setup()).chain(events).collect()
        };
        let cells: Vec<Vec<String>> = cells.into_iter().map(lines).collect();
        script(&cells)
    }

    /// Runs `experiment`. A kernel draws its own random numbers: only random starts and requests come from `seed`. The
    /// run's files (commands, messages, results) are copied to `kept_folder`.
    ///
    /// # Errors
    /// The lab cannot do what the experiment asks for, or the run failed.
    pub fn run(&self, experiment: &Experiment, seed: u64, kept_folder: Option<&Path>) -> Result<Run, Error> {
        let backend = &self.backends[self.backend(experiment)?];
        let experiment = &*experiment.with_seed(seed);
        let mut best: Option<RunResults> = None;
        for _ in 0..ATTEMPTS {
            let results = self.attempt(backend, experiment, seed, (kept_folder, best.as_ref()))?;
            let (steal, duration) = (results.steal, results.duration);
            let disturbed = steal.as_secs_f64() > Run::MAX_STEAL_SHARE * duration.as_secs_f64();
            if best.as_ref().is_none_or(|best| steal < best.steal) {
                best = Some(results);
            }
            if backend.is_virtual() || !disturbed {
                break;
            }
        }
        let environment = self.environment(backend, "", GUEST);
        let results = best.expect("there was an attempt");
        let starts: Vec<Instant> = experiment.flows.iter().map(|flow| start(flow, seed)).collect();
        let mut run = summary::summarise(experiment, &Network::new(experiment, &environment), seed, &starts, &results)?;
        if backend.is_virtual() {
            // Computing takes no virtual time: the kernel's counts are rounding errors.
            (run.steal_s, run.cpu) = (Some(0.0), Vec::new());
        }
        Ok(run)
    }

    /// One attempt of a run. Its files are kept unless an earlier attempt was better; those of a failed one too.
    fn attempt(
        &self,
        backend: &Backend,
        experiment: &Experiment,
        seed: u64,
        (kept_folder, best): (Option<&Path>, Option<&RunResults>),
    ) -> Result<RunResults, Error> {
        let folder = tempfile::Builder::new().prefix("ropewalk-lab-").tempdir().map_err(Error::failed)?;
        let name = testbed::name();
        let agent = [self.program.clone(), self.agent.clone()];
        let agent_arguments = agent.each_ref().map(String::as_str);
        testbed::sweep();
        let programs = backend.capabilities().programs_of(experiment);
        let _hold = Hold::load(&programs).map_err(Error::failed)?;
        let run = Some((folder.path(), &programs[..]));
        let _reaper = Reaper::start(&agent_arguments, &name, run).map_err(Error::failed)?;
        let process_folder = match backend {
            Backend::Guest(_) => GUEST.to_owned(),
            Backend::Netns(_) => folder.path().display().to_string(),
        };
        let environment = self.environment(backend, &name, &process_folder);
        let experiment = &backend.capabilities().with_kernel_names(experiment);
        let network = Network::new(experiment, &environment);
        let plan = plan(experiment, &network, &environment, seed);
        let mut setup = vec![commented(&draw_topology(&network))];
        setup.extend(network.setup());
        let results = match backend {
            Backend::Guest(kernel) => Guest::new(kernel, folder.path()).run(&agent, &setup, &plan),
            Backend::Netns(_) => HostKernel::run(&agent, folder.path(), &setup, &plan),
        };
        let results = results.and_then(|results| mptcp::check_algorithms(&plan, &results).map(|()| results));
        let is_better = |results: &RunResults| best.is_none_or(|best| results.steal < best.steal);
        if let Some(kept_folder) = kept_folder.filter(|_| results.as_ref().map_or(true, is_better)) {
            copy(folder.path(), kept_folder).map_err(Error::failed)?;
        }
        results
    }

    /// The index of the first backend that can run the experiment; else the unsupported feature of each, by the key of
    /// the first.
    fn backend(&self, experiment: &Experiment) -> Result<usize, Error> {
        let mut unsupported: Vec<(String, String)> = Vec::new();
        for (backend_index, backend) in self.backends.iter().enumerate() {
            let capabilities = backend.capabilities();
            match support::check(experiment, capabilities).and_then(|()| self.generator.check(experiment, capabilities))
            {
                Ok(()) => return Ok(backend_index),
                Err(Error::Unsupported { key, feature }) => unsupported.push((key, feature)),
                Err(error) => return Err(error),
            }
        }
        let (key, first) = unsupported.first().cloned().expect("a lab has a kernel");
        if unsupported.iter().all(|(_, feature)| *feature == first) {
            return Err(Error::Unsupported { key, feature: first });
        }
        let reasons = self
            .backends
            .iter()
            .zip(&unsupported)
            .map(|(backend, (_, feature))| format!("{feature} ({})", backend.describe()));
        Err(Error::Unsupported { key, feature: reasons.collect::<Vec<_>>().join(", nor ") })
    }

    fn environment(&self, backend: &Backend, name: &str, folder: &str) -> Environment {
        let program = shell_quoted(&self.program);
        let (prefix, sockets) = match backend {
            Backend::Guest(_) => (String::new(), SOCKETS.to_owned()),
            Backend::Netns(_) => (format!("{name}-"), folder.to_owned()),
        };
        // A timer that fires late costs capacity, which only a deeper bucket restores. In virtual time no timer is late.
        let burst = if backend.is_virtual() { 1 } else { 2 };
        let agent = format!("{program} {}", self.agent);
        let capabilities = backend.capabilities();
        let (netem, red) = (capabilities.netem, capabilities.qdiscs.contains(&"red"));
        let (generator, capture_program) = (self.generator, self.capture_program);
        Environment {
            prefix,
            folder: folder.to_owned(),
            sockets,
            program,
            agent,
            netem,
            red,
            burst,
            generator,
            capture_program,
        }
    }
}

fn plan(experiment: &Experiment, network: &Network<'_>, environment: &Environment, seed: u64) -> Plan {
    let span = |time: Instant| time.since(Instant::ZERO);
    let traffic = |(k, flow): (usize, &Flow)| FlowSpec {
        start: span(start(flow, seed)),
        stop: flow.stop.map(span),
        ends: network.flow_ends(k),
        transport: kind(experiment, network, k, seed),
    };
    let processes = |end: &str| (format!("tunnel {end}"), format!("{}/{end}.pid", environment.folder));
    Plan {
        duration: experiment.duration,
        sample: experiment.sample.unwrap_or(SAMPLE),
        flows: experiment.flows.iter().enumerate().map(traffic).collect(),
        events: network.events(),
        link_counters: (0..experiment.paths.len()).flat_map(|p| network.link_counters(p)).collect(),
        processes: experiment.tunnel.iter().flat_map(|_| ENDS.map(processes)).collect(),
        tunnel_statuses: network.tunnel_statuses(),
        stop_senders: network.stop_senders(),
        drain: network.drain(),
        device_counters: network.device_counters(),
        cleanup: network.end_captures(),
    }
}

/// The transport and application of flow `k`.
fn kind(experiment: &Experiment, network: &Network<'_>, k: usize, seed: u64) -> Transport {
    let flow = &experiment.flows[k];
    let payload = payload(experiment, flow);
    let (congestion, application, size) = match &flow.kind {
        FlowKind::Tcp { congestion, application, size, .. } => (congestion, application, *size),
        FlowKind::Hosted(_) => unreachable!("refused by `check`"),
        FlowKind::ConstantRate { rate, packet } => {
            return Transport::Udp(UdpSpec { interval: rate.time_for(u64::from(*packet)), packet: *packet, payload });
        }
    };
    let application = match application {
        model::Application::Greedy => {
            network.programs(k, start(flow, seed)).map_or(Application::Greedy, Application::Programs)
        }
        model::Application::Steady { rate, write } => {
            Application::Steady { rate: *rate, write: write.unwrap_or(u64::from(payload)) }
        }
        model::Application::Requests(requests) => {
            Application::Requests { requests: *requests, seed, name: flow.name.clone() }
        }
        model::Application::Video(_) => unreachable!("refused by `check`"),
    };
    let subflows = (flow.route == Route::Subflows).then(|| network.subflows(k));
    Transport::Tcp(TcpSpec { congestion: congestion.name.clone(), application, size, subflows })
}

/// The random start of a flow, as the simulator draws it.
fn start(flow: &Flow, seed: u64) -> Instant {
    flow.start + Span(RngStream::named(seed, &format!("flow {} start", flow.name)).below(flow.start_within.0 + 1))
}

/// Copies the plain files of a run, but no private keys.
fn copy(from: &Path, to: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let secret = entry.path().extension().is_some_and(|extension| extension == "key");
        if entry.file_type()?.is_file() && !secret {
            std::fs::copy(entry.path(), to.join(entry.file_name()))?;
        }
    }
    Ok(())
}
