//! The control loop, from the set-up to the end of the tunnel.

use super::error::Error;
use super::handle::DataPlaneHandle;
use super::network::{Network, has_strict_reverse_path};
use super::privileges::{confine, find_user};
use super::reload::{ControlConfig, Reloader};
use super::run_folder::RunFolder;
use super::server::{PendingRequest, Request, Shared, request_status, routes};
use super::state_file::{StateFile, running_tunnel, socket_name};
use super::system_calls::ThreadRole;
use crate::config::{self, TunnelConfig};
use crate::data_plane::LinkEvent;
use nix::unistd::geteuid;
use sd_notify::NotifyState;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, UnixListener};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;
use tracing::{info, warn};

/// Maximum number of pending requests.
const MAX_REQUESTS: usize = 16;
/// The interval of checks that the data plane answers, if systemd's watchdog sets none.
const WATCHDOG_INTERVAL: Duration = Duration::from_secs(10);

/// Opens the directory of sockets and state files, checks that the tunnel is not running, and removes the files that an
/// earlier one left. Called before the device is opened.
///
/// # Errors
/// The tunnel is running, or `directory` is refused ([`RunFolder::open`]).
pub fn clean_up(directory: &Path, interface: &str) -> Result<RunFolder, Error> {
    let action = "opening the directory of sockets and state files";
    let folder = RunFolder::open(directory).map_err(Error::system(action))?;
    if let Some(state) = running_tunnel(directory, interface) {
        return Err(Error::Running(state));
    }
    if let Some(state) = StateFile::read(directory, interface) {
        warn!(interface, pid = state.pid, "removing the files of a process that was killed");
    }
    StateFile::remove(&folder, interface).map_err(Error::system("removing the files of an earlier process"))?;
    Ok(folder)
}

/// Runs the control loop on this thread until the tunnel ends: sets the device up, drops privileges, serves requests;
/// at the end it stops the data plane and removes routes and files.
///
/// # Errors
/// The set-up failed, or the data plane ended by itself.
pub fn run(control: ControlConfig, data_plane: &Arc<dyn DataPlaneHandle>) -> Result<(), Error> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(Error::system("starting the control runtime"))?.block_on(async {
        let result = match set_up(control).await {
            Ok((mut reloader, listener, metrics)) => {
                let result = serve(&mut reloader, listener, metrics, data_plane).await;
                tear_down(&mut reloader).await;
                result
            }
            Err(error) => Err(error),
        };
        data_plane.stop();
        result
    })
}

async fn set_up(control: ControlConfig) -> Result<(Reloader, UnixListener, Option<TcpListener>), Error> {
    let network = Network::connect().map_err(Error::system("opening netlink"))?;
    let state = StateFile::of_this_process(&control.file, &control.config.interface.name);
    let state_file = state.create(&control.folder).map_err(Error::system("writing the state file"))?;
    let mut reloader = Reloader { control, network, state, state_file };
    match set_up_network(&mut reloader).await {
        Ok((listener, metrics)) => Ok((reloader, listener, metrics)),
        Err(error) => {
            remove_files(&reloader);
            Err(error)
        }
    }
}

async fn set_up_network(reloader: &mut Reloader) -> Result<(UnixListener, Option<TcpListener>), Error> {
    let interface = &reloader.control.config.interface;
    let set_up = reloader.network.set_up(&interface.name, &interface.addresses).await;
    set_up.map_err(Error::system("setting the device up"))?;
    add_relay_networks(reloader).await;
    reloader.add_routes().await.map_err(Error::system("adding routes"))?;
    warn_of_strict_reverse_paths(&reloader.control.config);
    let listener = listen(reloader).map_err(Error::system("listening for `ropewalk show` and others"))?;
    let metrics = match reloader.control.config.interface.metrics {
        Some(address) => {
            let listener = TcpListener::bind(address).await;
            Some(listener.map_err(Error::system(format!("listening on {address}")))?)
        }
        None => None,
    };
    Ok((listener, metrics))
}

/// Without its internal network a family is not relayed: a host may have no IPv6.
async fn add_relay_networks(reloader: &Reloader) {
    let config = &reloader.control.config;
    for network in config.relay.iter().flat_map(|relay| &relay.networks) {
        if let Err(error) = reloader.network.add_relay_network(&config.interface.name, *network).await {
            warn!("TCP over {} is not relayed: {error}", if network.local.is_ipv4() { "IPv4" } else { "IPv6" });
        }
    }
}

/// Opens the socket, writes the routes to the state file, and drops privileges.
fn listen(reloader: &Reloader) -> io::Result<UnixListener> {
    let ControlConfig { config, file, folder } = &reloader.control;
    let user = config.interface.user.as_deref().map(find_user).transpose()?;
    reloader.state_file.write(&reloader.state)?;
    let listener = UnixListener::from_std(folder.listen(&socket_name(&config.interface.name), user.as_ref())?)?;
    if user.is_none() && geteuid().is_root() {
        info!("stays root, with CAP_NET_ADMIN alone; `user = \"ropewalk\"` in [interface] names a user to change to");
    }
    confine(ThreadRole::Control, user.as_ref())?;
    if let Err(errors) = config::load(file) {
        warn!("a reload, which reads the configuration as the daemon's user, would fail: {errors}");
    }
    Ok(listener)
}

fn warn_of_strict_reverse_paths(config: &TunnelConfig) {
    let devices: Vec<_> = config.paths.iter().filter_map(|path| path.interface.as_ref()).collect();
    for device in devices.iter().filter(|device| devices.len() > 1 && has_strict_reverse_path(device)) {
        warn!(%device, "rp_filter = 1 drops replies on all uplinks but one: sysctl net.ipv4.conf.{device}.rp_filter=2");
    }
}

/// An event of the control loop.
enum ControlEvent {
    Request(PendingRequest),
    Link(String, LinkEvent),
    Reload,
    Terminate,
    Watchdog,
}

/// Serves until the tunnel ends.
async fn serve(
    reloader: &mut Reloader,
    listener: UnixListener,
    metrics: Option<TcpListener>,
    data_plane: &Arc<dyn DataPlaneHandle>,
) -> Result<(), Error> {
    data_plane.start();
    let (requests, mut pending) = mpsc::channel(MAX_REQUESTS);
    let shared = Shared { data_plane: Arc::clone(data_plane), requests };
    tokio::spawn(axum::serve(listener, routes(shared.clone(), true)).into_future());
    if let Some(metrics) = metrics {
        tokio::spawn(axum::serve(metrics, routes(shared, false)).into_future());
    }
    let mut signals = Signals::new().map_err(Error::system("listening to signals"))?;
    let watchdog = sd_notify::watchdog_enabled();
    let mut watchdog = tokio::time::interval(watchdog.map_or(WATCHDOG_INTERVAL, |limit| limit / 3));
    notify(&[NotifyState::Ready]);
    info!(interface = reloader.control.config.interface.name, "up");
    loop {
        let event = tokio::select! {
            Some(request) = pending.recv() => ControlEvent::Request(request),
            Some((device, event)) = reloader.network.link_event() => ControlEvent::Link(device, event),
            event = signals.next() => event,
            _ = watchdog.tick() => ControlEvent::Watchdog,
        };
        match event {
            ControlEvent::Request((Request::Down, reply)) => {
                // The response is sent before the process ends. The client may be gone.
                let _ = reply.send(Ok("going down\n".into()));
                tokio::time::sleep(Duration::from_millis(50)).await;
                break;
            }
            ControlEvent::Request((request, reply)) => {
                let _ = reply.send(reloader.handle(&request, &**data_plane).await);
            }
            ControlEvent::Link(device, event) => data_plane.on_link_event(&device, event),
            ControlEvent::Reload => match reloader.handle(&Request::Reload, &**data_plane).await {
                Ok(changes) => info!("reloaded: {}", changes.trim_end().replace('\n', "; ")),
                Err(error) => warn!("not reloaded: {error}"),
            },
            ControlEvent::Terminate => break,
            ControlEvent::Watchdog => {
                if request_status(&**data_plane).await.is_none() {
                    return Err(Error::system("waiting for the data plane")(io::ErrorKind::TimedOut.into()));
                }
                notify(&[NotifyState::Watchdog]);
            }
        }
    }
    notify(&[NotifyState::Stopping]);
    Ok(())
}

async fn tear_down(reloader: &mut Reloader) {
    let name = reloader.control.config.interface.name.clone();
    for route in reloader.state.routes.iter().filter_map(|route| route.parse().ok()) {
        if let Err(error) = reloader.network.remove_route(&name, route).await {
            warn!("not removed: {error}");
        }
    }
    remove_files(reloader);
    info!(interface = name, "down");
}

/// Removes the tunnel's files. The user that the process has become may not: then the state file is left empty.
fn remove_files(reloader: &Reloader) {
    let removed = StateFile::remove(&reloader.control.folder, &reloader.control.config.interface.name);
    let ended = removed.or_else(|_| reloader.state_file.clear());
    ended.unwrap_or_else(|error| warn!("the state file is not removed: {error}"));
}

struct Signals {
    hangup: Signal,
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    fn new() -> io::Result<Self> {
        Ok(Self {
            hangup: signal(SignalKind::hangup())?,
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    async fn next(&mut self) -> ControlEvent {
        tokio::select! {
            _ = self.hangup.recv() => ControlEvent::Reload,
            _ = self.interrupt.recv() => ControlEvent::Terminate,
            _ = self.terminate.recv() => ControlEvent::Terminate,
        }
    }
}

/// Notifies systemd, if it started the daemon.
fn notify(states: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(states) {
        warn!("cannot notify systemd: {error}");
    }
}
