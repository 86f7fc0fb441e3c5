//! `ropewalk up`: starts the data thread and the control loop, and runs until the tunnel ends.

mod data_plane_config;
mod handle;
mod path_assignment;
mod rates;
mod status_builder;

use crate::config::TunnelConfig;
use crate::control_plane::{self, ControlConfig, DataPlaneHandle, Error, ThreadRole, confine, keep_capabilities};
use crate::data_plane::{self, CommandReceiver, DataPlane, DataPlaneConfig};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::Duration;
use tracing::{error, warn};

/// Time for which the end of the process waits for the data thread's.
const STOP_TIMEOUT: Duration = Duration::from_secs(3);

/// Runs a tunnel until a request or a signal ends it. `file` is the absolute path of its configuration; its socket and
/// state file are in `directory`.
///
/// # Errors
/// The tunnel is running already; the device, a socket, an address or a route cannot be set up; an endpoint has no
/// address.
pub fn up(config: TunnelConfig, file: PathBuf, directory: &Path) -> Result<(), Error> {
    for warning in &config.warnings {
        warn!("{warning}");
    }
    let folder = control_plane::clean_up(directory, &config.interface.name)?;
    let (sender, receiver) = data_plane::channel().map_err(|error| system_error("creating an eventfd", error))?;
    let (data_plane_config, assignment) = data_plane_config::data_plane_config(&config)?;
    let (start_sender, end_receiver) = spawn_data_thread(data_plane_config, receiver)?;
    let handle: Arc<dyn DataPlaneHandle> =
        Arc::new(handle::CommandHandle::new(sender, start_sender, &config, assignment));
    let result = control_plane::run(ControlConfig { config, file, folder }, &handle);
    drop(handle);
    // The data thread tells peers and hosts that the tunnel is closed. It ends by dropping its sender.
    let _ = end_receiver.recv_timeout(STOP_TIMEOUT);
    result
}

/// Spawns the data thread, which opens the device and the sockets, and waits for that. The thread continues when the
/// returned sender is used: only then may it drop its privileges, because a change of user affects all threads. Its end
/// disconnects the returned receiver.
fn spawn_data_thread(config: DataPlaneConfig, commands: CommandReceiver) -> Result<(Sender<()>, Receiver<()>), Error> {
    let (open_sender, open_receiver) = mpsc::channel();
    let (start_sender, start_receiver) = mpsc::channel();
    let (end_sender, end_receiver) = mpsc::channel();
    let open = move || {
        keep_capabilities().map_err(|error| system_error("keeping capabilities", error))?;
        DataPlane::open(config).map_err(|error| system_error("opening the tunnel", error))
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
    opened.map(|start_sender| (start_sender, end_receiver))
}

fn system_error(action: &str, error: impl std::error::Error + Send + Sync + 'static) -> Error {
    Error::System { action: action.to_owned(), cause: io::Error::other(error) }
}
