//! `ropewalk up`: starts the data threads and the control loop, and runs until the tunnel ends.

mod data_plane_config;
mod handle;
mod lookups;
mod path_assignment;
mod rates;
mod status_builder;

use crate::config::TunnelConfig;
use crate::control_plane::{self, ControlConfig, DataPlaneHandle, Error, ThreadRole, confine, keep_capabilities};
use crate::data_plane::{self, DataPlane, DataPlaneConfig, DeviceQueue, ThreadLinks};
use nix::sys::signal::Signal;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver};
use std::time::Duration;
use tracing::{error, info, warn};

/// Time for which the process, at its end, waits for the end of the data thread.
const STOP_TIMEOUT: Duration = Duration::from_secs(3);

/// Runs a tunnel until a request or a signal ends it. `file` is the absolute path of its configuration; its socket and
/// state file are in `directory`. `program_version` is for the status.
///
/// # Errors
/// The tunnel is running already; the device, a socket, an address or a route cannot be set up; an endpoint has no
/// address.
pub fn up(config: TunnelConfig, file: PathBuf, directory: &Path, program_version: &str) -> Result<(), Error> {
    for warning in &config.warnings {
        warn!("{warning}");
    }
    let folder = control_plane::clean_up(directory, &config.interface.name)?;
    let config = control_plane::with_present_uplinks(config).map_err(|error| system_error("finding uplinks", error))?;
    let handshake_times = control_plane::open_handshake_times(&config)?;
    let (sender, events) = data_plane::event_channel();
    let earliest = handshake_times.earliest();
    let (data_plane_configs, assignment) = data_plane_config::data_plane_config(&config, earliest, &sender)?;
    let threads = spawn_data_threads(data_plane_configs)?;
    if threads.len() > 1 {
        info!("{} data threads", threads.len());
    }
    let (controls, ends): (Vec<_>, Vec<_>) = threads.into_iter().map(|thread| (thread.control, thread.end)).unzip();
    let handle: Arc<dyn DataPlaneHandle> = Arc::new(handle::CommandHandle::new(controls, &config, assignment));
    let program_version = program_version.to_owned();
    let config = ControlConfig { config, file, folder, program_version, handshake_times };
    let result = control_plane::run(config, &handle, events);
    drop(handle);
    // The data threads announce the end of the tunnel to peers and hosts. They end by dropping their senders.
    for end in ends {
        let _ = end.recv_timeout(STOP_TIMEOUT);
    }
    result
}

/// Makes this process get SIGTERM when its parent, the process `parent`, ends, even if the parent is killed.
///
/// # Errors
/// The parent has ended already.
pub fn end_with_parent(parent: u32) -> io::Result<()> {
    nix::sys::prctl::set_pdeathsig(Signal::SIGTERM)?;
    if std::os::unix::process::parent_id() == parent {
        return Ok(());
    }
    Err(io::Error::new(io::ErrorKind::NotFound, format!("the process {parent} that started this one has ended")))
}

/// A data thread.
struct DataThread {
    control: handle::ThreadControl,
    /// Disconnected by the thread's end.
    end: Receiver<()>,
}

/// Opens a device, with a queue for each data thread, and spawns the threads, which open their sockets in order.
fn spawn_data_threads(configs: Vec<DataPlaneConfig>) -> Result<Vec<DataThread>, Error> {
    if configs.len() <= 1 {
        return configs.into_iter().map(|config| spawn_data_thread(move || DataPlane::open(config))).collect();
    }
    let to_error = |error| system_error("opening the tunnel", error);
    let queues = DeviceQueue::open(&configs[0].device, configs.len()).map_err(to_error)?;
    let links = ThreadLinks::new(configs.len()).map_err(|error| system_error("creating an eventfd", error))?;
    let threads = configs.into_iter().zip(queues).zip(links);
    let spawn = |((config, queue), links)| spawn_data_thread(move || DataPlane::open_thread(config, queue, links));
    threads.map(spawn).collect()
}

/// Spawns a data thread, which opens its part of the data plane, and waits for that. The thread continues when it gets
/// the start signal: only then may it drop its privileges, because a change of user affects all threads.
fn spawn_data_thread(
    open: impl FnOnce() -> Result<DataPlane, data_plane::Error> + Send + 'static,
) -> Result<DataThread, Error> {
    let (sender, commands) = data_plane::channel().map_err(|error| system_error("creating an eventfd", error))?;
    let (open_sender, open_receiver) = mpsc::channel();
    let (start_sender, start_receiver) = mpsc::channel();
    let (end_sender, end) = mpsc::channel();
    let open = move || {
        keep_capabilities().map_err(|error| system_error("keeping capabilities", error))?;
        open().map_err(|error| system_error("opening the tunnel", error))
    };
    let run_thread = move || match open() {
        Err(error) => drop(open_sender.send(Err(error))),
        Ok(mut data_plane) => {
            // The receiver waits below.
            let _ = open_sender.send(Ok(start_sender));
            if start_receiver.recv().is_err() {
                return;
            }
            let confined = confine(ThreadRole::Data, None).map_err(|error| error.to_string());
            let result = confined.and_then(|()| data_plane.run(&commands).map_err(|error| error.to_string()));
            if let Err(error) = result {
                error!("the data plane ended: {error}");
            }
            drop(end_sender);
        }
    };
    std::thread::Builder::new()
        .name("data".into())
        .spawn(run_thread)
        .map_err(|error| system_error("starting a thread", error))?;
    let opened = open_receiver.recv().unwrap_or_else(|error| Err(system_error("opening the tunnel", error)));
    let control = handle::ThreadControl { commands: sender, start: opened? };
    Ok(DataThread { control, end })
}

fn system_error(action: &str, error: impl std::error::Error + Send + Sync + 'static) -> Error {
    Error::System { action: action.to_owned(), cause: io::Error::other(error) }
}
