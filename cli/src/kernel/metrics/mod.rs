//! `ropewalk kernel metrics`: programs, connections and subflows of all network namespaces, for Prometheus.
//!
//! By default the number of series is bounded by that of congestion controls: the values of many connections are summarised
//! by minimum, median and maximum. Series per subflow are optional, and bounded by a limit.

mod each;
mod summary;
mod text;

use super::namespaces::{self, Visit};
use crate::{Failure, output};
use clap::Args;
use filesystem::Folder;
use sock_diag::{SockDiag, SocketInfo};
use std::collections::{BTreeMap, HashSet};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use text::Family;

/// Linux `TCP_ESTABLISHED`.
const ESTABLISHED: u8 = 1;

/// The arguments: what to print, and where.
#[derive(Args, Debug)]
pub(crate) struct Options {
    /// Add series for each subflow of MPTCP, and of TCP that uses a program, labelled with its addresses
    #[arg(long)]
    per_connection: bool,
    /// Maximum number of subflows with series of their own; a metric counts those left out
    #[arg(long, default_value_t = 1000, requires = "per_connection", value_name = "SUBFLOWS")]
    limit: usize,
    /// Replace this file atomically instead of printing: for node_exporter's textfile collector
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// A TCP connection, or an MPTCP connection with its subflows.
struct Connection<'a> {
    /// The number of its namespace.
    namespace: u64,
    /// The local MPTCP token; none for plain TCP.
    token: Option<u32>,
    subflows: Vec<&'a SocketInfo>,
}

impl Connection<'_> {
    fn protocol(&self) -> &'static str {
        if self.token.is_some() { "mptcp" } else { "tcp" }
    }

    /// The congestion control of all subflows; `mixed` if they differ.
    fn algorithm(&self) -> &str {
        let first = self.subflows[0].congestion.as_str();
        if self.subflows.iter().all(|subflow| subflow.congestion == first) { first } else { "mixed" }
    }

    /// The acknowledged payload of its subflows, bytes.
    fn acked_bytes(&self) -> u64 {
        self.subflows.iter().map(|subflow| subflow.info.bytes_acked).sum()
    }
}

/// Prints or writes the metrics.
pub(super) fn metrics(options: &Options) -> Result<(), Failure> {
    let refused = |error| Failure::Environment(format!("the kernel does not list its sockets: {error}"));
    let visit = namespaces::visit(established).map_err(refused)?;
    let connections = connections(&visit.results);
    let mut families = vec![loaded(), ids(), namespaces(&visit)];
    families.extend(summary::families(&connections));
    if options.per_connection {
        families.extend(each::families(&connections, options.limit));
    }
    let text: String = families.iter().map(Family::text).collect();
    match &options.out {
        None => output::print(&text),
        Some(file) => {
            replace(file, &text).map_err(|error| Failure::Environment(format!("{}: {error}", file.display())))
        }
    }
}

/// The established sockets of the namespace that this thread is in.
fn established() -> io::Result<Vec<SocketInfo>> {
    let mut client = SockDiag::new()?;
    let mut sockets = client.dump(false)?;
    sockets.extend(client.dump(true)?);
    sockets.retain(|socket| socket.info.state == ESTABLISHED);
    Ok(sockets)
}

fn connections(namespaces: &BTreeMap<u64, Vec<SocketInfo>>) -> Vec<Connection<'_>> {
    let mut multipath: BTreeMap<(u64, u32), Vec<&SocketInfo>> = BTreeMap::new();
    let mut connections = Vec::new();
    for (namespace, socket) in namespaces.iter().flat_map(|(number, sockets)| sockets.iter().map(|it| (*number, it))) {
        match socket.token {
            Some(token) => multipath.entry((namespace, token)).or_default().push(socket),
            None => connections.push(Connection { namespace, token: None, subflows: vec![socket] }),
        }
    }
    let multipath = multipath.into_iter().map(|((namespace, token), subflows)| Connection {
        namespace,
        token: Some(token),
        subflows,
    });
    multipath.chain(connections).collect()
}

fn loaded() -> Family {
    let registered: HashSet<String> = kernel::registered();
    let mut family = Family::gauge("ropewalk_kernel_program_loaded", "Whether this program is loaded.");
    for program in kernel::PROGRAMS {
        let is_loaded = registered.contains(program.kernel_name);
        family.add(&[("program", program.kernel_name)], f64::from(u8::from(is_loaded)));
    }
    family
}

fn ids() -> Family {
    let mut family = Family::gauge("ropewalk_kernel_program_info", "A program that is loaded, with its id in bpftool.");
    for loaded in kernel::loaded() {
        family.add(&[("program", loaded.program.kernel_name), ("id", &loaded.id.to_string())], 1.0);
    }
    family
}

fn namespaces<T>(visit: &Visit<T>) -> Family {
    let help = "Network namespaces whose sockets are in these metrics, and those that could not be entered.";
    let mut family = Family::gauge("ropewalk_kernel_namespaces", help);
    family.add(&[("state", "read")], visit.results.len() as f64);
    family.add(&[("state", "refused")], visit.refused as f64);
    family
}

/// Writes a file as a whole: a reader sees either the earlier text or the new one.
fn replace(file: &Path, text: &str) -> io::Result<()> {
    let (folder, name) = Folder::of_file(file)?;
    // The collector reads names that end in `.prom`.
    let new = format!(".{}.{}", name.to_string_lossy(), std::process::id());
    folder.remove(&new)?;
    let written = folder.create_new(&new, 0o644)?.write_all(text.as_bytes()).and_then(|()| folder.rename(&new, &name));
    written.inspect_err(|_| drop(folder.remove(&new)))
}
