//! The commands of the tunnel: the daemon, its control, keys and configurations.

mod beyond;
mod check;
#[cfg(feature = "lab")]
mod demo;
mod fleet;
mod import;
mod keys;
mod live;
mod manage;
mod status;
mod target;
mod test;

use crate::Failure;
use crate::setup::{self, SetupVerb};
use clap::{Args, Subcommand};
use std::path::PathBuf;
pub(crate) use target::runtime_directory;

/// A command of the tunnel.
#[derive(Debug, Subcommand)]
pub(crate) enum TunnelVerb {
    /// Set up a server or a client with one command each, or undo it
    #[command(subcommand)]
    Setup(SetupVerb),
    /// Start a tunnel, and run until it ends
    Up {
        /// The configuration, a TOML file; a bare NAME is /etc/ropewalk/NAME.toml
        file: PathBuf,
        /// Only check the configuration, as `check` does
        #[arg(long)]
        check_only: bool,
        /// Text lines or JSON; RUST_LOG sets the level
        #[arg(long, value_parser = ["text", "json"], default_value = "text", value_name = "FORMAT")]
        log_format: String,
        /// The parent process, with which this one ends
        #[arg(long, value_name = "PID", hide = true)]
        parent: Option<u32>,
    },
    /// Stop a tunnel
    Down {
        /// The interface, or the configuration file
        tunnel: String,
    },
    /// Read the configuration file again without interrupting connections
    Reload {
        /// The interface, or the configuration file
        tunnel: String,
    },
    /// Show the status of tunnels, as `wg show` does
    Show(Show),
    /// Watch the rate, RTT, loss and share of each path of a tunnel
    Top {
        /// The interface, if there are several
        tunnel: Option<String>,
    },
    /// Print the RTT of each path once a second, measured by the tunnel's own probes
    Ping(Ping),
    /// Measure the rate and latency of a tunnel, for each path alone and for all together
    Test(test::Test),
    /// Show the tunnels of several hosts together
    Fleet(fleet::Fleet),
    /// Run a hook for each line of standard input: the daemon starts this
    #[command(hide = true)]
    NotifyHook {
        /// The program
        hook: PathBuf,
    },
    /// Check a configuration and report all of its errors
    Check {
        /// The configuration; a bare NAME is /etc/ropewalk/NAME.toml
        file: PathBuf,
        /// Also examine this host and its network: routes, firewall, MTU, clock, and the state of the running daemon
        #[arg(long)]
        live: bool,
    },
    /// Let DNS and web pages bypass an exclusive tunnel for some minutes: for a hotel's login page
    Portal {
        /// Duration, minutes
        #[arg(default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=60))]
        minutes: u32,
        /// The tunnel's device
        #[arg(long, default_value = "rw0", value_parser = setup::device_name)]
        name: String,
    },
    /// Print a new private key
    Genkey,
    /// Print the public key of the private key on standard input
    Pubkey,
    /// Print a new preshared key
    Genpsk,
    /// Demonstrate the tunnel on this machine
    #[cfg(feature = "lab")]
    #[command(subcommand)]
    Demo(Demo),
    /// Convert configurations
    #[cfg(feature = "mpt")]
    #[command(subcommand)]
    Tunnel(TunnelTool),
}

#[derive(Args, Debug)]
pub(crate) struct Show {
    /// The interface; without it, all
    tunnel: Option<String>,
    /// `dump`: for scripts, tab-separated fields
    #[arg(value_parser = ["dump"])]
    form: Option<String>,
    /// Print JSON: an object for one interface, a list for all
    #[arg(long, conflicts_with = "form")]
    json: bool,
}

#[derive(Args, Debug)]
pub(crate) struct Ping {
    /// The interface, if there are several
    tunnel: Option<String>,
    /// Only this path
    path: Option<String>,
    /// Stop after this many rounds
    #[arg(long, short, value_name = "N")]
    count: Option<u32>,
}

#[cfg(feature = "mpt")]
#[derive(Debug, Subcommand)]
pub(crate) enum TunnelTool {
    /// Convert MPT's interface.conf and connections/*.conf
    ImportMpt {
        /// The folder of interface.conf
        dir: PathBuf,
        /// The connection, if there are several
        #[arg(long, value_name = "NAME")]
        connection: Option<String>,
        /// Write to this file instead of standard output
        #[arg(long, short, value_name = "FILE")]
        out: Option<PathBuf>,
    },
}

#[cfg(feature = "lab")]
#[derive(Debug, Subcommand)]
pub(crate) enum Demo {
    /// Two hosts, two shaped paths, a transfer, and a path whose link goes down and up again; needs root
    Tunnel {
        /// The tunnel's protocol
        #[arg(long, default_value = "ropewalk", value_parser = ["ropewalk", "mpt"])]
        mode: String,
    },
}

/// Runs a command.
pub(crate) fn dispatch(verb: &TunnelVerb) -> Result<(), Failure> {
    match verb {
        TunnelVerb::Up { file, check_only: true, .. } => check::check(file, false),
        TunnelVerb::Check { file, live } => check::check(file, *live),
        TunnelVerb::Up { file, log_format, parent, .. } => manage::up(file, log_format == "json", *parent),
        TunnelVerb::Setup(verb) => setup::dispatch(verb),
        TunnelVerb::Down { tunnel } => manage::down(tunnel),
        TunnelVerb::Reload { tunnel } => manage::reload(tunnel),
        TunnelVerb::Show(Show { tunnel, form, json }) => status::show(tunnel.as_deref(), form.is_some(), *json),
        TunnelVerb::Top { tunnel } => status::top(tunnel.as_deref()),
        TunnelVerb::Ping(Ping { tunnel, path, count }) => status::ping(tunnel.as_deref(), path.as_deref(), *count),
        TunnelVerb::NotifyHook { hook } => manage::notify_hook(hook),
        TunnelVerb::Test(arguments) => test::test(arguments),
        TunnelVerb::Portal { minutes, name } => setup::portal(name, *minutes),
        TunnelVerb::Fleet(arguments) => fleet::fleet(arguments),
        TunnelVerb::Genkey => keys::print(&daemon::keys::genkey()),
        TunnelVerb::Genpsk => keys::print(&daemon::keys::genpsk()),
        TunnelVerb::Pubkey => keys::pubkey(),
        #[cfg(feature = "lab")]
        TunnelVerb::Demo(Demo::Tunnel { mode }) => demo::demo(mode),
        #[cfg(feature = "mpt")]
        TunnelVerb::Tunnel(TunnelTool::ImportMpt { dir, connection, out }) => {
            import::import_mpt(dir, connection.as_deref(), out.as_deref())
        }
    }
}
