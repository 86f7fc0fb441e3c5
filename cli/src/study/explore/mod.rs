//! `ropewalk explore`: a page of a local server, on which a scenario's keys are moved and its figures follow.
//!
//! ```text
//! server    the requests of the page: who may make them, which of them run, what ends them
//! source    the scenarios that the page may open
//! controls  a scenario's keys, as the page shows them
//! answer    what a change of a key gives: runs, figures, numbers, or the reader's message
//! ```

mod answer;
mod controls;
mod server;
mod source;
#[cfg(test)]
mod tests;

use super::Explore;
use crate::{Failure, output};
use runner::Simulator;
use server::Explorer;
use source::Sources;
use std::net::{Ipv4Addr, SocketAddr};
use std::process::{Command, Stdio};
use tokio::net::TcpListener;
use tokio::runtime::Builder;

/// Serves the page until the program ends.
pub(crate) fn explore(arguments: &Explore) -> Result<(), Failure> {
    let sources = Sources::new(arguments.scenario.as_deref())?;
    let failed = |error: std::io::Error| Failure::Environment(format!("cannot serve the page: {error}"));
    let runtime = Builder::new_current_thread().enable_io().build().map_err(failed)?;
    runtime.block_on(async {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, arguments.port));
        let listener = TcpListener::bind(address)
            .await
            .map_err(|error| Failure::Environment(format!("cannot listen on {address}: {error}")))?;
        let explorer = Explorer::new(listener.local_addr().map_err(failed)?, sources, Box::new(Simulator))?;
        let url = explorer.url();
        output::print(&format!("{url}\n"))?;
        output::warn("the page works while this program runs; Ctrl-C ends both");
        if !arguments.no_browser {
            open(&url);
        }
        explorer.serve(listener).await.map_err(failed)
    })
}

/// Opens the address in the browser of the desktop, if there is one: the address is printed anyway.
fn open(url: &str) {
    let program = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    let null = Stdio::null;
    let _ = Command::new(program).arg(url).stdin(null()).stdout(null()).stderr(null()).spawn();
}
