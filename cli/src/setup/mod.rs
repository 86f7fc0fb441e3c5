//! `setup`: a server, its clients, a client, and undoing either.
//!
//! - `plan`: the steps, shown before they are made; `record`: what was done, and how to undo it; `access`: owners of files
//!   and folders.
//! - `server`, `firewall`, `dns`, `service`: the steps of a server; `client`, `choices`: those of a client; `lan`: the
//!   networks behind it.
//! - `promises`: settings that hold while a tunnel is set up; `ruleset`: their nftables; `keep`: the process that keeps
//!   them.
//! - `token`, `tokens`, `qr`: all that a client needs, as one word; `clients`: the tokens' clients; `enrolment`: the use of a token;
//!   `inner`: which networks a token may name.
//! - `bulk`, `csv`, `expiry`: changes of many clients by tables, and their ends; `listing`: the list of clients; `audit`: who
//!   changed what; `dashboard`: where it is served; `backup`: a server in a file; `rotate`: other keys; `follow`: a client follows its server.
//! - `client_uplinks`: a client's uplinks; `trial`: traffic that is taken over a remote login, and given back.
//! - `host`: properties of this machine; `probe`: a test of the new tunnel.

mod access;
mod audit;
mod backup;
mod bulk;
mod choices;
mod client;
mod client_uplinks;
mod clients;
mod csv;
mod dashboard;
mod dns;
mod enrolment;
mod expiry;
mod firewall;
mod follow;
mod host;
mod inner;
mod keep;
mod lan;
mod listing;
mod plan;
mod probe;
mod promises;
mod qr;
mod record;
mod remove;
mod rotate;
mod ruleset;
mod server;
mod service;
mod token;
mod tokens;
mod trial;

use crate::{Failure, output};
use clap::{Args, Subcommand};
use clients::{NewClient, Server};
use daemon::config::Announcement;
use ipnet::{IpNet, Ipv6Net};
use plan::{Plan, Step, user_exists};
use promises::{ForwardArgument, Protocol};
use record::{Record, Undo};
use std::io::IsTerminal;
use std::net::IpAddr;
use std::path::PathBuf;

/// The daemon's user, as in the package.
const DAEMON_USER: &str = "ropewalk";
/// The folder of configurations and keys.
const CONFIG_FOLDER: &str = "/etc/ropewalk";

#[derive(Debug, Subcommand)]
pub(crate) enum SetupVerb {
    /// Make this machine a server, and print a token for a client; or manage its clients
    Server(Box<SetupServer>),
    /// Make this machine a client of the server that printed the token
    Client(SetupClient),
    /// Keep the traffic that `setup client` has taken on trial
    Confirm {
        /// The tunnel's device
        #[arg(long, default_value = "rw0", value_parser = device_name)]
        name: String,
    },
    /// Change the key of this end: a client's at once, a server's in two steps
    RotateKey {
        /// The tunnel's device
        #[arg(long, default_value = "rw0", value_parser = device_name)]
        name: String,
        /// On a server: use the key that was announced, if all clients know it
        #[arg(long)]
        now: bool,
        /// Use it even if some clients do not know it, and need another token
        #[arg(long, requires = "now")]
        force: bool,
    },
    /// On a client: fetch now what the server announces, which happens every ten minutes
    Follow {
        /// The tunnel's device
        #[arg(long, default_value = "rw0", value_parser = device_name)]
        name: String,
    },
    /// Serve the dashboard, which starts the tunnel again
    Dashboard {
        /// The address; any but a loopback one has a token
        #[arg(default_value = "127.0.0.1:9780")]
        address: std::net::SocketAddr,
        /// A token also on a loopback address, for a web server in front of it
        #[arg(long)]
        token: bool,
        /// Serve no dashboard
        #[arg(long, conflicts_with = "token")]
        off: bool,
        /// The tunnel's device
        #[arg(long, default_value = "rw0", value_parser = device_name)]
        name: String,
    },
    /// Show who changed what: clients, keys, backups
    Audit {
        /// The tunnel's device
        #[arg(long, default_value = "rw0", value_parser = device_name)]
        name: String,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Undo what `setup server` or `setup client` did
    Remove {
        /// The tunnel's device
        #[arg(long, default_value = "rw0", value_parser = device_name)]
        name: String,
        /// Only show the steps that would be undone
        #[arg(long)]
        dry_run: bool,
        /// Do not ask
        #[arg(long, short)]
        yes: bool,
    },
    /// Ends a trial when its time is over: not for users
    #[command(hide = true)]
    EndTrial {
        /// The tunnel's device
        #[arg(value_parser = device_name)]
        name: String,
        /// The process of the setup
        process: u32,
        /// The time, seconds
        seconds: u32,
    },
    /// Deletes the rules in chains of other programs: for units of a setup of version 0.1.0
    #[command(hide = true)]
    DeleteRules {
        /// The tunnel's device
        #[arg(value_parser = device_name)]
        name: String,
    },
    /// Keep the settings of a setup on this host in place (nftables, forwarding, routes, resolvers): ropewalk-keep@ runs it
    #[command(hide = true)]
    Keep {
        /// The tunnel's device
        #[arg(value_parser = device_name)]
        name: String,
    },
}

#[derive(Args, Debug)]
pub(crate) struct SetupServer {
    /// The public address or name of this machine, if it is behind a NAT; may be repeated
    #[arg(long, value_name = "HOST")]
    endpoint: Vec<String>,
    /// The UDP port
    #[arg(long, default_value_t = daemon::config::DEFAULT_PORT, value_parser = clap::value_parser!(u16).range(1..))]
    port: u16,
    /// The inner network [default: 10.77.0.0/24, or the next free one]
    #[arg(long, value_name = "NETWORK")]
    subnet: Option<IpNet>,
    /// An IPv6 network that is routed to this machine: clients get its addresses, without translation
    #[arg(long, value_name = "NETWORK")]
    prefix: Option<Ipv6Net>,
    /// A resolver for the clients [default: the one that runs here, or public ones]; may be repeated
    #[arg(long, value_name = "ADDRESS")]
    dns: Vec<IpAddr>,
    /// The name of the first client [default: client1]; once the server is set up, the client that --lan refers to
    #[arg(long, value_name = "NAME")]
    client: Option<String>,
    /// Set the server up without a first client
    #[arg(long, conflicts_with = "client")]
    no_client: bool,
    /// A network or address of this machine that clients may reach, or the network behind the client; may be repeated
    #[arg(long, value_name = "NETWORK", value_parser = promises::network)]
    lan: Vec<IpNet>,
    /// Forward a port of this machine to a client or a host behind one, such as tcp:8080=192.168.50.10:80 or
    /// udp:5060=client1; may be repeated
    #[arg(long, value_name = "PORT=TARGET", value_parser = promises::forward)]
    forward: Vec<ForwardArgument>,
    /// Close a forwarded port, such as tcp:8080; may be repeated
    #[arg(long, value_name = "PORT", value_parser = forwarded_port)]
    remove_forward: Vec<(Protocol, u16)>,
    /// Whether clients can reach each other
    #[arg(long, value_name = "YES|NO", value_parser = ["yes", "no"])]
    between_clients: Option<String>,
    /// How long a token is valid, hours
    #[arg(long, value_name = "HOURS", default_value_t = 24, value_parser = clap::value_parser!(u32).range(1..=8760))]
    token_hours: u32,
    /// Add a client and print its token
    #[arg(long, value_name = "NAME", group = "task")]
    add: Option<String>,
    /// Add the clients of a table (CSV: name, and perhaps lan and expires), and print their tokens
    #[arg(long, value_name = "FILE", group = "task")]
    add_from: Option<PathBuf>,
    /// Remove a client
    #[arg(long, value_name = "NAME", group = "task")]
    revoke: Option<String>,
    /// Remove the clients of a table (CSV: name)
    #[arg(long, value_name = "FILE", group = "task")]
    revoke_from: Option<PathBuf>,
    /// Give a client another name
    #[arg(long, value_name = "OLD=NEW", group = "task")]
    rename: Option<String>,
    /// Rename the clients of a table (CSV: name,new-name)
    #[arg(long, value_name = "FILE", group = "task")]
    rename_from: Option<PathBuf>,
    /// End a client's time: a day, a time from now such as 90d or 12h, or never
    #[arg(long, value_name = "NAME=WHEN", group = "task")]
    expire: Option<String>,
    /// End the time of the clients of a table (CSV: name,expires)
    #[arg(long, value_name = "FILE", group = "task")]
    expire_from: Option<PathBuf>,
    /// When the time of the client of --add ends
    #[arg(long, value_name = "WHEN", requires = "add")]
    expires: Option<String>,
    /// List the clients
    #[arg(long, group = "task")]
    list: bool,
    /// Write the server, its key and its clients to a file
    #[arg(long, value_name = "FILE", group = "task")]
    backup: Option<PathBuf>,
    /// Make this machine the server of a backup
    #[arg(long, value_name = "FILE", group = "task")]
    restore: Option<PathBuf>,
    /// Announce to the clients where the server will be, an address or a name; `none` announces nothing; may be repeated
    #[arg(long, value_name = "HOST", group = "task")]
    move_to: Vec<String>,
    /// Print the list, or the tokens, as JSON
    #[arg(long)]
    json: bool,
    /// The tunnel's device
    #[arg(long, default_value = "rw0", value_parser = device_name)]
    name: String,
    /// Only show the steps
    #[arg(long)]
    dry_run: bool,
    /// Do not ask
    #[arg(long, short)]
    yes: bool,
}

#[derive(Args, Debug)]
pub(crate) struct SetupClient {
    /// `-` asks for the token that `ropewalk setup server` printed, or reads it from standard input; `ps` shows a token
    /// given here to all users
    token: String,
    /// The networks that go through the tunnel [default: everything]
    #[arg(long, value_name = "NETWORK", num_args = 1.., value_delimiter = ',')]
    networks: Vec<IpNet>,
    /// A network behind this machine that uses the tunnel, or the device that leads to it; `none`; may be repeated [default:
    /// those of a router]
    #[arg(long, value_name = "DEVICE|NETWORK", num_args = 1.., value_delimiter = ',')]
    lan: Vec<String>,
    /// Traffic that does not use the tunnel: a network, a port (udp:5060), or a device whose packets bypass it; may be
    /// repeated
    #[arg(long, value_name = "WHAT", num_args = 1.., value_delimiter = ',', value_parser = promises::bypass)]
    bypass: Vec<Bypass>,
    /// Whether everything else is blocked if the tunnel is down or a route bypasses it [default: yes, if everything
    /// goes through the tunnel]
    #[arg(long, value_name = "YES|NO", value_parser = ["yes", "no"])]
    exclusive: Option<String>,
    /// Whether the private addresses of the uplinks' own networks stay reachable while the tunnel is exclusive
    #[arg(long)]
    local_networks: bool,
    /// Whether SSH logins from the uplinks are answered while the tunnel is exclusive [default: yes]
    #[arg(long, value_name = "YES|NO", value_parser = ["yes", "no"])]
    login: Option<String>,
    /// The tunnel's device
    #[arg(long, default_value = "rw0", value_parser = device_name)]
    name: String,
    /// Only show the steps
    #[arg(long)]
    dry_run: bool,
    /// Do not ask; the plan says what this assumes over a remote login
    #[arg(long, short)]
    yes: bool,
    /// Give the traffic back after this time, unless `setup confirm` follows [default over a remote login: 180]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(1..=86_400))]
    confirm_within: Option<u32>,
}

impl SetupServer {
    /// Whether it asks for a change of an existing server.
    fn changes(&self) -> bool {
        let is_told = !self.lan.is_empty() || !self.forward.is_empty() || !self.remove_forward.is_empty();
        is_told || self.between_clients.is_some()
    }

    /// What is to be known of a new client but its name and its networks.
    fn new_client(&self) -> NewClient {
        NewClient { token_hours: self.token_hours, expires: None, json: self.json }
    }

    /// The name of the first client.
    fn first_client(&self) -> &str {
        self.client.as_deref().unwrap_or("client1")
    }
}

fn forwarded_port(text: &str) -> Result<(Protocol, u16), String> {
    promises::port(text).ok_or_else(|| "such as tcp:8080".to_owned())
}

/// Runs a command.
pub(crate) fn dispatch(verb: &SetupVerb) -> Result<(), Failure> {
    let is_dry_run = match verb {
        SetupVerb::Server(arguments) => arguments.dry_run,
        SetupVerb::Client(SetupClient { dry_run, .. }) | SetupVerb::Remove { dry_run, .. } => *dry_run,
        SetupVerb::Confirm { .. }
        | SetupVerb::RotateKey { .. }
        | SetupVerb::Follow { .. }
        | SetupVerb::Audit { .. }
        | SetupVerb::Dashboard { .. }
        | SetupVerb::EndTrial { .. }
        | SetupVerb::DeleteRules { .. }
        | SetupVerb::Keep { .. } => false,
    };
    if !is_dry_run && !nix::unistd::geteuid().is_root() {
        return Err(Failure::Environment("a setup needs root: use sudo, or --dry-run to see its steps".into()));
    }
    match verb {
        SetupVerb::Server(arguments) => match &**arguments {
            arguments if bulk::is_asked(arguments) => bulk::change(arguments),
            SetupServer { list: true, name, json, .. } => listing::list(&Server::open(name)?, name, *json),
            SetupServer { backup: Some(file), name, .. } => backup::write(name, file),
            SetupServer { restore: Some(file), .. } => backup::restore(arguments, file),
            SetupServer { move_to, name, .. } if !move_to.is_empty() => Server::open(name)?.announce_move(move_to),
            arguments if arguments.changes() && Server::is_set_up(&arguments.name)? => {
                Server::open(&arguments.name)?.change(arguments)
            }
            arguments => server::setup(arguments),
        },
        SetupVerb::Client(arguments) => client::setup(arguments),
        SetupVerb::Confirm { name } => trial::confirm(name),
        SetupVerb::EndTrial { name, process, seconds } => trial::end(name, *process, *seconds),
        SetupVerb::RotateKey { name, now, force } => rotate::run(
            name,
            match (now, force) {
                (false, _) => rotate::Step::Announce,
                (true, false) => rotate::Step::Now,
                (true, true) => rotate::Step::Force,
            },
        ),
        SetupVerb::Follow { name } => follow::fetch(name),
        SetupVerb::Audit { name, json } => audit::show(name, *json),
        SetupVerb::Dashboard { address, token, off, name } => {
            dashboard::change(name, (!off).then_some(*address), *token)
        }
        SetupVerb::Remove { name, dry_run, yes } => remove::remove(name, *dry_run, *yes),
        SetupVerb::DeleteRules { name } => record::delete_rules(&keep::comment(name)).map_err(environment),
        SetupVerb::Keep { name } => keep::run(name),
    }
}

/// A device's name, which is part of file names.
pub(crate) fn device_name(text: &str) -> Result<String, String> {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    if (1..=15).contains(&text.len()) && text.chars().all(is_allowed) && !text.starts_with('-') {
        return Ok(text.to_owned());
    }
    Err("1 to 15 letters, digits, `-` or `_`, such as rw0".to_owned())
}

fn config_file(name: &str) -> PathBuf {
    PathBuf::from(CONFIG_FOLDER).join(format!("{name}.toml"))
}

/// The folder of the daemon's own files, whose user must be able to replace them.
fn state_folder() -> PathBuf {
    PathBuf::from(if host::is_openwrt() { "/etc/ropewalk/state" } else { "/var/lib/ropewalk" })
}

fn key_file(name: &str) -> PathBuf {
    PathBuf::from(CONFIG_FOLDER).join(format!("{name}.key"))
}

/// The private key that a server will have next.
fn next_key_file(name: &str) -> PathBuf {
    PathBuf::from(CONFIG_FOLDER).join(format!("{name}.key.next"))
}

fn peers_file(name: &str) -> PathBuf {
    state_folder().join(format!("{name}.peers.toml"))
}

/// What a server announces to its clients.
fn announcement_file(name: &str) -> PathBuf {
    Announcement::file(&peers_file(name))
}

pub(crate) use clients::date;
pub(crate) use keep::{examine, portal};
pub(crate) use lan::misrouted;
pub(crate) use promises::{Bypass, ClientPromises, Lan};

/// Whether a setup made this tunnel, if this user may know.
pub(crate) fn is_set_up(interface: &str) -> bool {
    Record::read(interface).is_ok_and(|record| record.is_some_and(|record| record.is_complete))
}

/// The promises of a client's setup; `None` for a server, and for a tunnel that no setup made.
pub(crate) fn client_promises(interface: &str) -> Option<ClientPromises> {
    let record = Record::read(interface).ok().flatten().filter(|record| record.is_complete)?;
    record.server.is_none().then_some(record.promises.client)
}

fn environment(error: String) -> Failure {
    Failure::Environment(error)
}

/// The daemon's user and its folders, and the user, if this machine can make one.
fn base_steps(name: &str) -> (Vec<Step>, Option<String>) {
    let user = (user_exists(DAEMON_USER) || host::program("useradd").is_some()).then(|| DAEMON_USER.to_owned());
    let mut steps: Vec<_> = user.iter().cloned().map(Step::User).collect();
    let owner = user.as_ref().map(|user| format!("root:{user}"));
    steps.push(Step::Folder { path: CONFIG_FOLDER.into(), mode: 0o750, owner });
    steps.push(Step::Folder { path: state_folder(), mode: 0o750, owner: user.clone() });
    let history_folder = if host::is_openwrt() { PathBuf::from(service::OPENWRT_STATE) } else { state_folder() };
    steps.push(Step::AtRemoval(Undo::DaemonFile(history_folder.join(format!("{name}.history")))));
    steps.push(Step::AtRemoval(Undo::DaemonFile(state_folder().join(format!("{name}.handshakes")))));
    (steps, user)
}

/// Whether a plan was carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Go {
    Yes,
    No,
}

/// Shows a plan, asks, and carries out its steps up to number `end`.
fn carry_out(plan: &Plan, end: usize, record: &mut Record, is_dry_run: bool, is_agreed: bool) -> Result<Go, Failure> {
    output::print(&plan.describe())?;
    let conflicts = plan.conflicts();
    if !conflicts.is_empty() {
        return Err(Failure::Environment(format!(
            "{}: exists already, and not from a setup: move it away, or --name another tunnel",
            conflicts.join(", ")
        )));
    }
    if is_dry_run || !is_confirmed(is_agreed)? {
        return Ok(Go::No);
    }
    plan.carry_out(..end, record).map_err(|error| {
        Failure::Environment(format!(
            "{error}\n  help: the same command again undoes what was done, and tries again; `ropewalk setup remove` only undoes \
             it"
        ))
    })?;
    Ok(Go::Yes)
}

/// Whether the plan is agreed to, by --yes or by an answer.
fn is_confirmed(is_agreed: bool) -> Result<bool, Failure> {
    if is_agreed {
        return Ok(true);
    }
    if !std::io::stdin().is_terminal() {
        return Err(Failure::Usage("nothing is done without an answer; --yes answers yes".into()));
    }
    Ok(host::confirm())
}
