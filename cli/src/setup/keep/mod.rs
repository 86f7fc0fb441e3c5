//! `setup keep NAME`: keeps the promises of the setup on this host, as root, whether or not the daemon runs.
//!
//! It examines the host, restores settings that are missing, and reports them. It examines the host again when nftables, a
//! device, an address, a route, a rule or a forwarding setting changes (netlink), when it is asked to, and every few seconds
//! for changes that cause no event. `examine` finds the missing settings, which `check --live` shows too.

mod bypass;
mod examine;
mod names;
mod watch;

use super::follow;
use super::host;
use super::record::{delete_rules, write_sysctl};
use super::ruleset::{exclusive_table_name, table_name};
use crate::tunnel::runtime_directory;
use crate::{Failure, output};
use daemon::control_plane::Client;
use daemon::event::{EventLevel, HostEvent};
use std::collections::BTreeMap;
use std::fs::{self, DirBuilder};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::time::{Duration, Instant};

pub(super) use examine::early_text;
pub(crate) use examine::{Fault, examine};
use examine::{FaultKind, Wanted};
use watch::{Wake, Watch};

/// The folder of sockets and of loaded tables, which only root may use.
pub(super) const RUN: &str = "/run/ropewalk-setup";
/// The time for an answer of a running keeper.
const TIMEOUT: Duration = Duration::from_secs(20);
/// The same fault is reported again after this time.
const TELL_INTERVAL: Duration = Duration::from_secs(60);
/// Asks a keeper to examine the host now.
const LOOK: u8 = b'l';
/// Asks a keeper to end.
const END: u8 = b'e';

/// A file of a tunnel in the folder.
fn run_file(interface: &str, extension: &str) -> PathBuf {
    PathBuf::from(RUN).join(format!("{interface}.{extension}"))
}

/// Runs until a request to end arrives.
pub(super) fn run(interface: &str) -> Result<(), Failure> {
    let listener = listen(interface).map_err(|error| Failure::Environment(format!("{RUN}: {error}")))?;
    let mut watch = Watch::new(&listener).map_err(|error| Failure::Environment(format!("netlink: {error}")))?;
    let mut keeper = Keeper::new(interface);
    keeper.look();
    let _ = notify_ready();
    let follows = interface.to_owned();
    std::thread::spawn(move || follow::run(&follows));
    loop {
        match watch.wait() {
            Wake::Changed => keeper.look(),
            Wake::Asked => {
                let Ok((mut stream, _)) = listener.accept() else { continue };
                let mut word = [0];
                let _ = stream.set_read_timeout(Some(Duration::from_secs(1)));
                if stream.read_exact(&mut word).is_err() {
                    continue;
                }
                if word[0] == END {
                    let _ = fs::remove_file(run_file(interface, "keep"));
                    let _ = stream.write_all(b".");
                    return Ok(());
                }
                keeper.look();
                let _ = stream.write_all(b".");
            }
        }
    }
}

/// The keeper's socket, replacing one on which no process listens any more.
fn listen(interface: &str) -> io::Result<UnixListener> {
    make_folder()?;
    let path = run_file(interface, "keep");
    if UnixStream::connect(&path).is_ok() {
        return Err(io::Error::other(format!("another process already keeps {interface}")));
    }
    let _ = fs::remove_file(&path);
    UnixListener::bind(path)
}

fn make_folder() -> io::Result<()> {
    match DirBuilder::new().mode(0o700).create(RUN) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => Ok(()),
    }
}

/// Tells systemd that the first examination is over (sd_notify(3)).
fn notify_ready() -> io::Result<()> {
    let Some(path) = std::env::var_os("NOTIFY_SOCKET") else { return Ok(()) };
    let socket = std::os::unix::net::UnixDatagram::unbound()?;
    let path = path.to_string_lossy().into_owned();
    let address = match path.strip_prefix('@') {
        Some(name) => {
            use std::os::linux::net::SocketAddrExt;
            std::os::unix::net::SocketAddr::from_abstract_name(name)?
        }
        None => std::os::unix::net::SocketAddr::from_pathname(&path)?,
    };
    socket.send_to_addr(b"READY=1", &address).map(drop)
}

/// Asks a running keeper. Returns whether there is one and it has complied.
fn ask(interface: &str, word: u8) -> bool {
    let exchange = || -> io::Result<()> {
        let mut stream = UnixStream::connect(run_file(interface, "keep"))?;
        stream.set_read_timeout(Some(TIMEOUT))?;
        stream.write_all(&[word])?;
        stream.read_exact(&mut [0])
    };
    exchange().is_ok()
}

/// Whether a keeper runs.
pub(crate) fn is_running(interface: &str) -> bool {
    UnixStream::connect(run_file(interface, "keep")).is_ok()
}

/// Has the host examined now: by the keeper, or in this process if none runs.
pub(super) fn look(interface: &str) {
    if !ask(interface, LOOK) {
        Keeper::new(interface).look();
    }
}

/// Ends a running keeper.
pub(super) fn end(interface: &str) {
    ask(interface, END);
}

/// Removes everything that was put in place, except kernel settings.
pub(super) fn release(interface: &str) -> Result<(), String> {
    names::restore(interface)?;
    bypass::remove(interface);
    for table in [table_name(interface), exclusive_table_name(interface)] {
        let text = format!("table inet {table} {{}}\ndelete table inet {table}\n");
        if host::program("nft").is_some() {
            host::run_with_input(&["nft", "-f", "-"], &text)?;
        }
    }
    if host::program("nft").is_some() {
        delete_rules(&comment(interface))?;
    }
    ["tables", "portal", "resolvers", "keep"]
        .iter()
        .for_each(|extension| drop(fs::remove_file(run_file(interface, extension))));
    let _ = fs::remove_dir(RUN);
    Ok(())
}

/// The comment of rules in others' chains.
pub(super) fn comment(interface: &str) -> String {
    format!("ropewalk-{interface}")
}

/// Opens an exclusive tunnel for a captive portal: it lets DNS and web pages use the uplinks for some minutes. The kernel
/// then closes it.
pub(crate) fn portal(interface: &str, minutes: u32) -> Result<(), Failure> {
    let failure = |error: String| Failure::Environment(error);
    if !nix::unistd::geteuid().is_root() {
        return Err(failure("`portal` needs root".into()));
    }
    let wanted = Wanted::read(interface).map_err(failure)?;
    if !wanted.is_some_and(|wanted| wanted.surroundings.is_exclusive) {
        return Err(failure(format!("{interface} is not exclusive: it does not block the portal")));
    }
    make_folder().map_err(|error| failure(error.to_string()))?;
    let end = daemon::config::unix_time() + u64::from(minutes) * 60;
    fs::write(run_file(interface, "portal"), end.to_string()).map_err(|error| failure(error.to_string()))?;
    look(interface);
    output::print(&format!(
        "for {minutes} min, DNS and web pages use the uplinks, outside the tunnel: log in at the portal now\n"
    ))
}

/// Restores missing settings.
struct Keeper {
    interface: String,
    /// The time of the latest report of each fault, by its text.
    told: BTreeMap<String, Instant>,
}

impl Keeper {
    fn new(interface: &str) -> Self {
        Self { interface: interface.to_owned(), told: BTreeMap::new() }
    }

    fn look(&mut self) {
        let wanted = match Wanted::read(&self.interface) {
            Ok(Some(wanted)) => wanted,
            Ok(None) => return,
            Err(error) => return self.tell(EventLevel::Warn, &error, None),
        };
        for fault in examine::faults(&wanted) {
            let result = mend(&wanted, &fault);
            match result {
                Ok(()) if fault.is_expected => {}
                Ok(()) => self.tell(EventLevel::Warn, &format!("{}; put back", fault.text), None),
                Err(error) => {
                    let text = format!("{}; it cannot be restored: {error}", fault.text);
                    self.tell(EventLevel::Error, &text, Some(&fault.remedy));
                }
            }
        }
    }

    /// Reports a fault to the log and to the daemon's events, each at most once a minute.
    fn tell(&mut self, level: EventLevel, text: &str, remedy: Option<&str>) {
        if self.told.get(text).is_some_and(|last| last.elapsed() < TELL_INTERVAL) {
            return;
        }
        self.told.retain(|_, last| last.elapsed() < TELL_INTERVAL);
        self.told.insert(text.to_owned(), Instant::now());
        output::warn(text);
        let event = HostEvent { level, message: text.to_owned(), remedy: remedy.map(str::to_owned) };
        let body = serde_json::to_string(&event).unwrap_or_default();
        // Without a daemon the log has the report.
        let _ = Client::new(&runtime_directory(), &self.interface).request("POST", "/v1/events", &body);
    }
}

/// Restores one setting.
fn mend(wanted: &Wanted, fault: &Fault) -> Result<(), String> {
    match &fault.kind {
        FaultKind::Tables => wanted.load_tables(),
        FaultKind::Rules { place, rules } => {
            // Remaining rules are removed first, so that none exists twice.
            examine::delete_rules_of(place, &comment(&wanted.interface))?;
            rules.iter().try_for_each(|rule| {
                let comment = comment(&wanted.interface);
                host::run_with_input(
                    &["nft", "-f", "-"],
                    &format!("insert rule {place} {rule} comment \"{comment}\"\n"),
                )
            })
        }
        FaultKind::Sysctl { key, value } => write_sysctl(key, value),
        FaultKind::Bypass => bypass::apply(wanted),
        FaultKind::Names => names::set(wanted),
        FaultKind::Keeper => Ok(()),
        FaultKind::NamesRestore => names::restore(&wanted.interface),
    }
}
