//! The control loop, from the setup to the end of the tunnel.

use super::clients::{self, Clients};
use super::enrolment::{self, Enrolments};
use super::error::Error;
use super::events::unix_ms;
use super::expiry::Expiry;
use super::handle::DataPlaneHandle;
use super::listeners::Server;
use super::lost_uplinks::SeenUplinks;
use super::metered::SystemBus;
use super::monitor::{Monitor, Observer};
use super::network::{Network, NetworkEvent, has_strict_reverse_path};
use super::observation::{Observation, quota_file};
use super::policy_routing::PolicyRouting;
use super::privileges::{ThreadRole, confine, find_user};
use super::reload::{ControlConfig, Reloader, alone_ends};
use super::run_folder::RunFolder;
use super::server::{PendingRequest, Refusal, Request, Shared, request_status, routes};
use super::state_file::{StateFile, running_tunnel, socket_name};
use crate::config::{self, TunnelConfig};
use crate::dashboard::read_routes;
use crate::data_plane::EventReceiver;
use crate::event::{Event, EventKind, EventLevel};
use crate::handshake_times::wall_clock;
use crate::nat64;
use crate::quota::QuotaKeeper;
use crate::speed_test::{PORT as TEST_PORT, Responder};
use crate::status::{TunnelStatus, UplinkStatus};
use nix::unistd::{User, geteuid};
use sd_notify::NotifyState;
use std::io;
use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream, UnixListener};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::{mpsc, watch};
use tokio::time::Instant as TokioInstant;
use tracing::{debug, info, warn};

/// Maximum number of pending requests.
const MAX_REQUESTS: usize = 16;
/// The delay between a change of devices or routes and the search for uplinks: a DHCP client changes several things.
const SETTLE_TIME: Duration = Duration::from_millis(500);
/// The interval of checks that the data plane answers, if systemd's watchdog does not set one.
const WATCHDOG_INTERVAL: Duration = Duration::from_secs(10);

/// Opens the directory of sockets and state files, checks that the tunnel is not running, and removes the files that an
/// earlier process left. Called before the device is opened.
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
/// at the end it stops the data plane and removes routes and files. `events` are the data plane's.
///
/// # Errors
/// The setup failed, or the data plane ended by itself.
pub fn run(control: ControlConfig, data_plane: &Arc<dyn DataPlaneHandle>, events: EventReceiver) -> Result<(), Error> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(Error::system("starting the control runtime"))?.block_on(async {
        let result = match set_up(control).await {
            Ok((mut reloader, listeners)) => {
                let result = serve(&mut reloader, listeners, data_plane, events).await;
                tear_down(&mut reloader).await;
                result
            }
            Err(error) => Err(error),
        };
        data_plane.stop();
        result
    })
}

/// The open listeners.
struct Listeners {
    control: UnixListener,
    observation: Observation,
    enrolment: Option<TcpListener>,
}

async fn set_up(control: ControlConfig) -> Result<(Reloader, Listeners), Error> {
    let interface = &control.config.interface;
    let follow_routes = interface.uplinks.is_some() || interface.policy_routing;
    let network = Network::connect(follow_routes).map_err(Error::system("opening netlink"))?;
    let mut policy_routing = PolicyRouting::new(network.handle(), &interface.name, interface.listen_port);
    // An earlier process may have been killed.
    policy_routing.remove_all().await.unwrap_or_else(|error| warn!("policy routing is not removed: {error}"));
    let state = StateFile::of_this_process(&control.file, &control.config.interface.name);
    let state_file = state.create(&control.folder).map_err(Error::system("writing the state file"))?;
    let (observer, seen_uplinks) = (Arc::default(), SeenUplinks::default());
    let system_bus = SystemBus::default();
    let clients = Arc::new(Clients::read(control.config.interface.peers_file.as_deref()));
    let mut reloader = Reloader {
        control,
        network,
        state,
        state_file,
        policy_routing,
        alone: None,
        observer,
        seen_uplinks,
        system_bus,
        quotas: QuotaKeeper::default(),
        responder: None,
        has_quota_failed: false,
        left_out: Vec::new(),
        expiry: Expiry::default(),
        clients,
    };
    match set_up_network(&mut reloader).await {
        Ok(listeners) => Ok((reloader, listeners)),
        Err(error) => {
            remove_files(&reloader);
            Err(error)
        }
    }
}

async fn set_up_network(reloader: &mut Reloader) -> Result<Listeners, Error> {
    let interface = &reloader.control.config.interface;
    let set_up = reloader.network.set_up(&interface.name, &interface.addresses).await;
    set_up.map_err(Error::system("setting the device up"))?;
    add_relay_networks(reloader).await;
    reloader.add_routes().await.map_err(Error::system("adding routes"))?;
    warn_of_strict_reverse_paths(&reloader.control.config);
    // Before capabilities are dropped: older kernels require one for binding to a device.
    let enrolment = enrolment::listen(&reloader.control.config).map_err(Error::system("listening for enrolments"))?;
    let user = reloader.control.config.interface.user.as_deref().map(find_user).transpose();
    let user = user.map_err(Error::system("finding the user"))?;
    open_quotas(reloader, user.as_ref());
    let observation = Observation::open(&reloader.control.config, user.as_ref()).await;
    let observation = observation.map_err(Error::system("listening for the dashboard and the metrics"))?;
    // The last step, which drops privileges: after a failure, another user than root could not remove the files.
    let control = listen(reloader, user.as_ref()).map_err(Error::system("listening for `ropewalk show` and others"))?;
    Ok(Listeners { control, observation, enrolment })
}

/// Opens the file of the quotas, if there are any.
fn open_quotas(reloader: &mut Reloader, user: Option<&User>) {
    let config = &reloader.control.config;
    let of_uplinks = config.interface.uplinks.as_ref().is_some_and(|options| !options.quotas.is_empty());
    let has_quotas = of_uplinks || config.paths.iter().any(|path| path.quota.is_some());
    let (quotas, events) = QuotaKeeper::open(quota_file(config, has_quotas, user), has_quotas, user);
    reloader.quotas = quotas;
    events.into_iter().for_each(|event| reloader.observer.events.push(event));
}

/// Adds the relay's internal networks. A family without one is not relayed: a host may have no IPv6.
async fn add_relay_networks(reloader: &Reloader) {
    let config = &reloader.control.config;
    for network in config.relay.iter().flat_map(|relay| &relay.networks) {
        if let Err(error) = reloader.network.add_relay_network(&config.interface.name, *network).await {
            warn!("TCP over {} is not relayed: {error}", if network.local.is_ipv4() { "IPv4" } else { "IPv6" });
        }
    }
}

/// Opens the socket, writes the routes to the state file, and drops privileges.
fn listen(reloader: &Reloader, user: Option<&User>) -> io::Result<UnixListener> {
    let ControlConfig { config, file, folder, .. } = &reloader.control;
    reloader.state_file.write(&reloader.state)?;
    let listener = UnixListener::from_std(folder.listen(&socket_name(&config.interface.name), user)?)?;
    if user.is_none() && geteuid().is_root() {
        info!("stays root, with CAP_NET_ADMIN only; `user = \"ropewalk\"` in [interface] names a user to change to");
    }
    confine(ThreadRole::Control, user)?;
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
    Network(NetworkEvent),
    RoutesSettled,
    /// A request by a signal or a timer.
    OwnRequest(Request),
    Enrolment(TcpStream, IpAddr),
    /// The traffic of the paths since the latest check.
    Uplinks,
    Terminate,
    Watchdog,
}

/// The next connection of a listener; without a listener it never returns.
async fn accept(listener: Option<&TcpListener>) -> Option<(TcpStream, IpAddr)> {
    match listener {
        // A client that has gone before it was accepted is an error.
        Some(listener) => listener.accept().await.ok().map(|(stream, source)| (stream, source.ip())),
        None => std::future::pending().await,
    }
}

/// Serves until the tunnel ends.
async fn serve(
    reloader: &mut Reloader,
    listeners: Listeners,
    data_plane: &Arc<dyn DataPlaneHandle>,
    events: EventReceiver,
) -> Result<(), Error> {
    let Listeners { control, mut observation, enrolment } = listeners;
    data_plane.start();
    let (requests, mut pending) = mpsc::channel(MAX_REQUESTS);
    let (enrolment_requests, enrolments) = (requests.clone(), Enrolments::default());
    let observer = Arc::clone(&reloader.observer);
    let shared = shared(reloader, data_plane, requests);
    observation.start(&shared);
    reloader.responder = answer_speed_tests(&reloader.control.config, &reloader.control.program_version);
    follow_routes(reloader, &**data_plane).await;
    Server::control(control).start(read_routes(&observation.dashboard, routes(shared)));
    let mut signals = Signals::new().map_err(Error::system("listening to signals"))?;
    let watchdog = sd_notify::watchdog_enabled();
    let mut watchdog = tokio::time::interval(watchdog.map_or(WATCHDOG_INTERVAL, |limit| limit / 3));
    notify(&[NotifyState::Ready]);
    tell(&observer, EventKind::Start, reloader, "is up");
    let mut uplinks = watch(reloader, data_plane, events, observation.recording());
    let mut settled: Option<TokioInstant> = None;
    loop {
        let event = tokio::select! {
            Some(request) = pending.recv() => ControlEvent::Request(request),
            Some(event) = reloader.network.event() => ControlEvent::Network(event),
            () = tokio::time::sleep_until(settled.unwrap_or_else(TokioInstant::now)), if settled.is_some() => {
                ControlEvent::RoutesSettled
            }
            event = signals.next() => event,
            Some((stream, source)) = accept(enrolment.as_ref()) => ControlEvent::Enrolment(stream, source),
            Ok(()) = uplinks.changed() => ControlEvent::Uplinks,
            _ = watchdog.tick() => ControlEvent::Watchdog,
            () = alone_ends(reloader.alone.as_ref()) => ControlEvent::OwnRequest(Request::AllPaths),
        };
        match event {
            ControlEvent::Request((Request::Down, reply)) => {
                // The response is sent before the process ends. The client may be gone.
                let _ = reply.send(Ok("going down\n".into()));
                tokio::time::sleep(Duration::from_millis(50)).await;
                break;
            }
            ControlEvent::Request((request, reply)) => {
                let _ = reply.send(carry_out(reloader, &request, &**data_plane).await);
            }
            ControlEvent::Network(event) => settled = settled.or(Some(on_network_event(event, &**data_plane))),
            ControlEvent::RoutesSettled => {
                settled = None;
                follow_routes(reloader, &**data_plane).await;
            }
            // Its event reports the result.
            ControlEvent::OwnRequest(request) => drop(carry_out(reloader, &request, &**data_plane).await),
            ControlEvent::Enrolment(stream, source) => {
                enrolments.accept(stream, source, &reloader.control.config, &enrolment_requests);
            }
            ControlEvent::Uplinks => {
                let latest = uplinks.borrow_and_update().clone();
                reloader.follow_quotas(&latest, &**data_plane).await;
            }
            ControlEvent::Terminate => break,
            ControlEvent::Watchdog => settled = settled.or(on_watchdog(reloader, &**data_plane, &observer).await?),
        }
    }
    notify(&[NotifyState::Stopping]);
    finish_quotas(reloader, &**data_plane).await;
    tell(&observer, EventKind::Stop, reloader, "goes down");
    observation.finish();
    Ok(())
}

/// Follows the host's routes if the configuration says so, and reports the changes. At the start, routes may have
/// changed since the uplinks were found. An uplink that disappears later is known as lost.
async fn follow_routes(reloader: &mut Reloader, data_plane: &dyn DataPlaneHandle) {
    if !reloader.follows_routes() {
        return reloader.update_notices();
    }
    let events = reloader.follow_routes(data_plane).await;
    events.into_iter().for_each(|event| reloader.observer.events.push(event));
}

/// Watches the data plane's events and its status, which `record` gets. Returns a channel of the traffic of the paths.
fn watch(
    reloader: &Reloader,
    data_plane: &Arc<dyn DataPlaneHandle>,
    events: EventReceiver,
    mut record: impl FnMut(&TunnelStatus) + Send + 'static,
) -> watch::Receiver<Vec<UplinkStatus>> {
    nat64::listen().unwrap_or_else(|error| debug!("router advertisements are not received: {error}"));
    let (sender, uplinks) = watch::channel(Vec::new());
    let (observer, routes) = (Arc::clone(&reloader.observer), reloader.network.routes());
    let record = move |status: &TunnelStatus| {
        record(status);
        sender.send_replace(status.uplinks.clone());
    };
    let interface = &reloader.control.config.interface;
    let monitor = Monitor::new(Arc::clone(data_plane), observer, routes, interface.name.clone(), interface.listen_port);
    tokio::spawn(monitor.watch(events, record));
    uplinks
}

/// The state that the handlers of requests share.
fn shared(
    reloader: &Reloader,
    data_plane: &Arc<dyn DataPlaneHandle>,
    requests: mpsc::Sender<PendingRequest>,
) -> Shared {
    let ControlConfig { config, program_version, .. } = &reloader.control;
    let shared = Shared::new(Arc::clone(data_plane), requests, &reloader.observer, program_version);
    shared.with_clients(&reloader.clients, config.interface.peers_file.as_deref())
}

/// Carries out a request, and reports it as an event, unless it is a client's hello.
async fn carry_out(
    reloader: &mut Reloader,
    request: &Request,
    data_plane: &dyn DataPlaneHandle,
) -> Result<String, Refusal> {
    let result = reloader.handle(request, data_plane).await;
    if !matches!(request, Request::Hello(..)) {
        reloader.observer.events.push(request_event(request, &result));
    }
    result
}

/// Counts the final traffic of the paths.
async fn finish_quotas(reloader: &mut Reloader, data_plane: &dyn DataPlaneHandle) {
    if let Some(status) = request_status(data_plane).await {
        let events = reloader.quotas.update(unix_ms() / 1000, &reloader.control.config.paths, &status.uplinks);
        events.into_iter().for_each(|event| reloader.observer.events.push(event));
    }
    let failure = reloader.quotas.write();
    failure.into_iter().for_each(|event| reloader.observer.events.push(event));
}

fn tell(observer: &Observer, kind: EventKind, reloader: &Reloader, text: &str) {
    let name = &reloader.control.config.interface.name;
    observer.events.push(Event::new(EventLevel::Info, kind, format!("{name} {text}")));
}

/// Passes on an event of a device. Returns when to check the host's addresses and routes.
fn on_network_event(event: NetworkEvent, data_plane: &dyn DataPlaneHandle) -> TokioInstant {
    if let NetworkEvent::Link(device, event) = event {
        data_plane.on_link_event(&device, event);
    }
    TokioInstant::now() + SETTLE_TIME
}

/// Does what is due at each interval of the watchdog. Returns when to check the host's routes, if they concern the
/// tunnel: the kernel drops messages of changes that come too fast.
async fn on_watchdog(
    reloader: &mut Reloader,
    data_plane: &dyn DataPlaneHandle,
    observer: &Observer,
) -> Result<Option<TokioInstant>, Error> {
    reloader.control.handshake_times.update(wall_clock());
    if let Some(file) = &reloader.control.config.interface.peers_file {
        let written = reloader.clients.write(file);
        written.unwrap_or_else(|error| warn!("what clients say of themselves is not kept: {error}"));
    }
    reloader.expire(data_plane).await.into_iter().for_each(|event| observer.events.push(event));
    if request_status(data_plane).await.is_none() {
        return Err(Error::system("waiting for the data plane")(io::ErrorKind::TimedOut.into()));
    }
    notify(&[NotifyState::Watchdog]);
    Ok(reloader.follows_routes().then(TokioInstant::now))
}

/// The event about a request that was carried out or refused.
fn request_event(request: &Request, result: &Result<String, Refusal>) -> Event {
    match request {
        Request::Enrol(source, ..) => enrolment::event(*source, result),
        Request::Rotate(source, ..) => clients::rotation_event(*source, result),
        Request::PathAlone(_) | Request::AllPaths => alone_event(result),
        _ => reload_event(result),
    }
}

/// Starts the responder of speed tests. A tunnel works without it.
fn answer_speed_tests(config: &TunnelConfig, version: &str) -> Option<Arc<Responder>> {
    if !config.observation.speed_test {
        return None;
    }
    let own = &config.interface.addresses;
    let responder = Responder::new(own, config.peers.iter().map(|peer| &peer.allowed_ips[..]));
    let responder = Arc::new(responder.with_version(version));
    let started = responder.start(&config.interface.name);
    started.inspect_err(|error| warn!("speed tests of peers are not answered: port {TEST_PORT}: {error}")).ok()?;
    Some(responder)
}

/// The event about the beginning or the end of a test of one path alone.
fn alone_event(result: &Result<String, Refusal>) -> Event {
    let text = result.as_ref().map_or_else(Refusal::text, String::as_str);
    Event::new(EventLevel::Info, EventKind::Reload, format!("speed test: {}", text.trim_end()))
}

/// The event about a configuration change that was carried out or refused.
fn reload_event(result: &Result<String, Refusal>) -> Event {
    match result {
        Ok(changes) => {
            let changes = changes.trim_end().replace('\n', "; ");
            Event::new(EventLevel::Info, EventKind::Reload, format!("reloaded: {changes}"))
        }
        Err(error) => Event {
            remedy: Some("fix the file and reload again: the earlier configuration stays in force".into()),
            ..Event::new(EventLevel::Warn, EventKind::Reload, format!("not reloaded: {}", error.text().trim_end()))
        },
    }
}

async fn tear_down(reloader: &mut Reloader) {
    let name = reloader.control.config.interface.name.clone();
    for route in reloader.state.routes.iter().filter_map(|route| route.parse().ok()) {
        if let Err(error) = reloader.network.remove_route(&name, route).await {
            warn!("not removed: {error}");
        }
    }
    let removed = reloader.policy_routing.remove_all().await;
    removed.unwrap_or_else(|error| warn!("policy routing is not removed: {error}"));
    remove_files(reloader);
    info!(interface = name, "down");
}

/// Removes the tunnel's files. The user that the process has changed to may lack the permission: then the state file is
/// left empty.
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
            _ = self.hangup.recv() => ControlEvent::OwnRequest(Request::Reload),
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
