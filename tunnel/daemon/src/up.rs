//! Bringing a tunnel up: configuration in, data thread and control thread out, until the end.

mod bridge;
mod layout;
mod setup;
mod told;

use crate::config::Config;
use crate::control::{self, Control, DataPlane, Error, Privileges, drop_privileges};
use crate::plane::{self, Inbox, Plane, Setup};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{self, Sender};
use tracing::{error, warn};

/// Runs the tunnel of `config`, which was read from `file` (absolute), until a demand or a signal ends it. Its socket and
/// its state file lie in `folder`.
///
/// # Errors
/// It is up already; the device, a socket, an address or a route is refused; an endpoint has no address.
pub fn up(config: Config, file: PathBuf, folder: PathBuf) -> Result<(), Error> {
    for warning in &config.warnings {
        warn!("{warning}");
    }
    control::repair(&folder, &config.interface.name)?;
    let (commander, inbox) = plane::channel().map_err(|error| failed("making an eventfd", error))?;
    let (setup, layout) = setup::setup(&config)?;
    let go = open(setup, inbox)?;
    let plane: Arc<dyn DataPlane> = Arc::new(bridge::Bridge::new(commander, go, &config, layout));
    control::run(Control { config, file, folder }, &plane)
}

/// Starts the data thread, and waits until it has opened the device and the sockets, which never leave it. It goes on when
/// it is told to: only then may it give its privileges up, for a change of user happens to all threads in the same way.
fn open(setup: Setup, inbox: Inbox) -> Result<Sender<()>, Error> {
    let (tell, told) = mpsc::channel();
    let (go, gone) = mpsc::channel();
    let work = move || match Plane::open(setup) {
        Err(error) => drop(tell.send(Err(failed("opening the tunnel", error)))),
        Ok(mut plane) => {
            // Who waits for the answer is still there: it waits for nothing else.
            let _ = tell.send(Ok(go));
            if gone.recv().is_err() {
                return;
            }
            let ready = drop_privileges(&Privileges::default()).map_err(|error| error.to_string());
            if let Err(error) = ready.and_then(|()| plane.run(&inbox).map_err(|error| error.to_string())) {
                error!("the data plane ended: {error}");
            }
        }
    };
    std::thread::Builder::new().name("data".into()).spawn(work).map_err(|error| failed("starting a thread", error))?;
    told.recv().unwrap_or_else(|error| Err(failed("opening the tunnel", error)))
}

fn failed(what: &str, error: impl std::error::Error + Send + Sync + 'static) -> Error {
    Error::System { what: what.to_owned(), cause: io::Error::other(error) }
}
