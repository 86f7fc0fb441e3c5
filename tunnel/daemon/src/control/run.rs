//! The control loop: from the set-up to the end of the tunnel.

use super::network::{Network, strict_reverse_path};
use super::plane::DataPlane;
use super::privilege::{Privileges, drop_privileges};
use super::server::{Demand, Order, Shared, routes, status_of};
use super::state::{State, is_running, socket_path};
use crate::config::Config;
use crate::plane::Link;
use sd_notify::NotifyState;
use std::fmt;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, UnixListener};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;
use tracing::{info, warn};

/// Demands that may wait.
const ORDERS: usize = 16;
/// How often the data plane is asked whether it is alive, where systemd's watchdog does not say how often.
const IDLE: Duration = Duration::from_secs(10);

/// What the control loop works with.
pub struct Control {
    /// The configuration as it is in force.
    pub config: Config,
    /// Its file, absolute.
    pub file: PathBuf,
    /// Where sockets and state files lie: [`RUN`](super::RUN).
    pub folder: PathBuf,
}

/// Why a tunnel does not come up.
#[derive(Debug)]
pub enum Error {
    /// It is up already.
    Running(State),
    /// Something refuses.
    System {
        /// What was tried.
        what: String,
        /// What came of it.
        cause: io::Error,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Running(state) => {
                let State { interface, pid, .. } = state;
                write!(f, "{interface} is up already (process {pid}): `ropewalk down {interface}` ends it")
            }
            Self::System { what, cause } => write!(f, "{what}: {cause}"),
        }
    }
}

impl std::error::Error for Error {}

fn system(what: impl Into<String>) -> impl FnOnce(io::Error) -> Error {
    |cause| Error::System { what: what.into(), cause }
}

/// Refuses if the tunnel is up, and clears away what a killed one left. To be called before the device is opened.
///
/// # Errors
/// It is up, or the folder of sockets cannot be made.
pub fn repair(folder: &Path, interface: &str) -> Result<(), Error> {
    if let Some(state) = is_running(folder, interface) {
        return Err(Error::Running(state));
    }
    if let Some(left) = State::read(folder, interface) {
        warn!(interface, pid = left.pid, "clearing away what a tunnel left that did not end by itself");
        State::remove(folder, interface);
    }
    std::fs::create_dir_all(folder).map_err(system(format!("making {}", folder.display())))
}

/// Runs the control side on this thread until the tunnel ends: sets the device up, gives privileges up, then answers,
/// watches, reloads; at the end stops the data plane and takes away what it has set.
///
/// # Errors
/// Something of the set-up failed. Once the tunnel is up, nothing ends it but a demand, a signal, or the data plane's end.
pub fn run(control: Control, plane: &Arc<dyn DataPlane>) -> Result<(), Error> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(system("starting the control runtime"))?.block_on(async {
        let outcome = match Daemon::set_up(control).await {
            Ok((mut daemon, listener, metrics)) => {
                let outcome = daemon.live(listener, metrics, plane).await;
                daemon.tear_down().await;
                outcome
            }
            Err(error) => Err(error),
        };
        plane.stop();
        outcome
    })
}

/// A tunnel that is up.
pub(super) struct Daemon {
    pub(super) control: Control,
    pub(super) network: Network,
    pub(super) state: State,
}

/// What can wake the loop.
enum Wake {
    Order(Order),
    Link(String, Link),
    Hangup,
    Terminate,
    Feed,
}

impl Daemon {
    async fn set_up(control: Control) -> Result<(Self, UnixListener, Option<TcpListener>), Error> {
        let name = control.config.interface.name.clone();
        let network = Network::connect().map_err(system("opening netlink"))?;
        let state = State::of_this_process(&control.file, &name);
        let mut daemon = Self { control, network, state };
        let addresses = &daemon.control.config.interface.addresses;
        daemon.network.set_up(&name, addresses).await.map_err(system("setting the device up"))?;
        daemon.add_routes().await.map_err(system("setting routes"))?;
        daemon.warn_of_reverse_paths();
        let listener = daemon.listen().map_err(system("listening for `ropewalk show` and others"))?;
        let metrics = match daemon.control.config.interface.metrics {
            Some(address) => Some(TcpListener::bind(address).await.map_err(system(format!("listening on {address}")))?),
            None => None,
        };
        Ok((daemon, listener, metrics))
    }

    fn listen(&self) -> io::Result<UnixListener> {
        let Control { config, folder, .. } = &self.control;
        self.state.write(folder)?;
        let socket = socket_path(folder, &config.interface.name);
        let _ = std::fs::remove_file(&socket);
        let listener = UnixListener::bind(&socket)?;
        std::fs::set_permissions(&socket, std::fs::Permissions::from_mode(0o660))?;
        let user = config.interface.user.clone();
        let state = folder.join(format!("{}.state", config.interface.name));
        drop_privileges(&Privileges { user, hand_over: vec![folder.clone(), socket, state] })?;
        Ok(listener)
    }

    fn warn_of_reverse_paths(&self) {
        let devices: Vec<_> = self.control.config.paths.iter().filter_map(|path| path.interface.as_ref()).collect();
        for device in devices.iter().filter(|device| devices.len() > 1 && strict_reverse_path(device)) {
            warn!(%device, "rp_filter = 1 drops what comes back on all uplinks but one: sysctl net.ipv4.conf.{device}.rp_filter=2");
        }
    }

    /// Serves until the end.
    async fn live(
        &mut self,
        listener: UnixListener,
        metrics: Option<TcpListener>,
        plane: &Arc<dyn DataPlane>,
    ) -> Result<(), Error> {
        plane.start();
        let (orders, mut inbox) = mpsc::channel(ORDERS);
        let shared = Shared { plane: Arc::clone(plane), orders };
        tokio::spawn(axum::serve(listener, routes(shared.clone(), true)).into_future());
        if let Some(metrics) = metrics {
            tokio::spawn(axum::serve(metrics, routes(shared, false)).into_future());
        }
        let mut signals = Signals::new().map_err(system("listening to signals"))?;
        let watchdog = sd_notify::watchdog_enabled();
        let mut feeding = tokio::time::interval(watchdog.map_or(IDLE, |limit| limit / 3));
        notify(&[NotifyState::Ready]);
        info!(interface = self.control.config.interface.name, "up");
        loop {
            let wake = tokio::select! {
                Some(order) = inbox.recv() => Wake::Order(order),
                Some((device, link)) = self.network.link_event() => Wake::Link(device, link),
                wake = signals.next() => wake,
                _ = feeding.tick() => Wake::Feed,
            };
            match wake {
                Wake::Order((Demand::Down, answer)) => {
                    // The answer leaves before the process does; who asked may be gone.
                    let _ = answer.send(Ok("going down\n".into()));
                    tokio::time::sleep(Duration::from_millis(50)).await;
                    break;
                }
                Wake::Order((demand, answer)) => {
                    let _ = answer.send(self.obey(&demand, &**plane).await);
                }
                Wake::Link(device, link) => plane.link(&device, link),
                Wake::Hangup => match self.obey(&Demand::Reload, &**plane).await {
                    Ok(said) => info!("reloaded: {}", said.trim_end().replace('\n', "; ")),
                    Err(wrong) => warn!("not reloaded: {wrong}"),
                },
                Wake::Terminate => break,
                Wake::Feed => {
                    if status_of(&**plane).await.is_none() {
                        return Err(system("asking the data plane how it is")(io::ErrorKind::TimedOut.into()));
                    }
                    notify(&[NotifyState::Watchdog]);
                }
            }
        }
        notify(&[NotifyState::Stopping]);
        Ok(())
    }

    async fn tear_down(&mut self) {
        let name = self.control.config.interface.name.clone();
        for route in self.state.routes.iter().filter_map(|route| route.parse().ok()) {
            if let Err(error) = self.network.remove_route(&name, route).await {
                warn!("left behind: {error}");
            }
        }
        State::remove(&self.control.folder, &name);
        info!(interface = name, "down");
    }
}

struct Signals {
    hangup: Signal,
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    fn new() -> io::Result<Self> {
        let of = |kind| signal(kind);
        Ok(Self {
            hangup: of(SignalKind::hangup())?,
            interrupt: of(SignalKind::interrupt())?,
            terminate: of(SignalKind::terminate())?,
        })
    }

    async fn next(&mut self) -> Wake {
        tokio::select! {
            _ = self.hangup.recv() => Wake::Hangup,
            _ = self.interrupt.recv() => Wake::Terminate,
            _ = self.terminate.recv() => Wake::Terminate,
        }
    }
}

/// Tells systemd, where there is one.
fn notify(states: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(states) {
        warn!("systemd is not to be told: {error}");
    }
}
