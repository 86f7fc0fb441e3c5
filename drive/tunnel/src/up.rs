//! Bringing a tunnel up: configuration in, data thread and control thread out, until the end.

mod bridge;
mod setup;

use crate::config::Config;
use crate::control::{self, Control, Error, Privileges, drop_privileges};
use crate::plane::{self, Inbox, Plane, Setup};
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, mpsc};
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
    open(setup::setup(&config)?, inbox)?;
    let plane = Arc::new(bridge::Bridge::new(commander, &config));
    control::run(Control { config, file, folder }, plane)
}

/// Starts the data thread, and waits until it has opened the device and the sockets: they never leave it, and it gives its
/// privileges up as soon as it has them.
fn open(setup: Setup, inbox: Inbox) -> Result<(), Error> {
    let (tell, told) = mpsc::channel();
    let work = move || {
        let opened = Plane::open(setup).map_err(|error| failed("opening the tunnel", error));
        let ready = opened.and_then(|plane| {
            drop_privileges(&Privileges::default()).map_err(|error| failed("giving privileges up", error))?;
            Ok(plane)
        });
        match ready {
            Ok(mut plane) => {
                // Who waits for the answer is still there: it waits for nothing else.
                let _ = tell.send(Ok(()));
                if let Err(error) = plane.run(&inbox) {
                    error!("the data plane ended: {error}");
                }
            }
            Err(error) => drop(tell.send(Err(error))),
        }
    };
    std::thread::Builder::new().name("data".into()).spawn(work).map_err(|error| failed("starting a thread", error))?;
    told.recv().unwrap_or_else(|error| Err(failed("opening the tunnel", error)))
}

fn failed(what: &str, error: impl std::error::Error + Send + Sync + 'static) -> Error {
    Error::System { what: what.to_owned(), cause: io::Error::other(error) }
}
