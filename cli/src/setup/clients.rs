//! The clients of a server: changes of the list of peers, and the tokens.

use super::bulk::{self, BulkError};
use super::promises::{Forward, ForwardArgument, ServerPromises};
use super::record::{Record, ServerRecord};
use super::server::{endpoints, own_and_behind};
use super::token::{Token, nth_address, server_address};
use super::tokens::{print_as_json, print_token};
use super::{SetupServer, announcement_file, audit, environment, host, keep};
use crate::tunnel::runtime_directory;
use crate::{Failure, output};
use daemon::config::{
    self, Announcement, EnrolledPeer, Mode, PEER_NAME_HELP, PeersFile, TunnelConfig, is_peer_name, overlap, unix_time,
};
use daemon::control_plane::{Client, ClientError};
use ipnet::IpNet;
use seal::{PresharedKey, PrivateKey, SystemEntropy};
use std::net::IpAddr;
use std::path::PathBuf;
use time::OffsetDateTime;

/// A server that is set up.
pub(super) struct Server {
    interface: String,
    record: Record,
    info: ServerRecord,
    config: TunnelConfig,
    peers_file: PathBuf,
}

impl Server {
    pub(super) fn open(interface: &str) -> Result<Self, Failure> {
        let record = Record::read(interface).map_err(environment)?;
        let not_set_up = || {
            Failure::Environment(format!(
                "no server {interface} is set up here: `ropewalk setup server` sets one up, --name names another one"
            ))
        };
        let record = record.filter(|record| record.is_complete).ok_or_else(not_set_up)?;
        let info = record.server.clone().ok_or_else(not_set_up)?;
        let file = super::config_file(interface);
        let config = config::load(&file).map_err(Failure::Configuration)?;
        let Some(peers_file) = config.interface.peers_file.clone() else {
            return Err(Failure::Environment(format!("{} has no `peers-file`", file.display())));
        };
        Ok(Self { interface: interface.to_owned(), record, info, config, peers_file })
    }

    /// Whether a server of this name is set up.
    pub(super) fn is_set_up(interface: &str) -> Result<bool, Failure> {
        let record = Record::read(interface).map_err(environment)?;
        Ok(record.is_some_and(|record| record.is_complete && record.server.is_some()))
    }

    /// The promises of the server, which a setup of an earlier version did not record.
    fn promises(&mut self) -> Result<&mut ServerPromises, Failure> {
        let early = keep::early_text(&self.interface);
        self.record.promises.server.as_mut().ok_or(Failure::Environment(early))
    }

    /// Changes the networks that clients reach, the networks behind a client, and forwarded ports.
    pub(super) fn change(&mut self, arguments: &SetupServer) -> Result<(), Failure> {
        let (open, behind) = own_and_behind(&arguments.lan);
        if let Some(name) = arguments.client.as_deref().filter(|_| !behind.is_empty()) {
            let mut file = self.peers()?;
            self.check_lans(&behind, name, &file.peers)?;
            let peer = file.peers.iter_mut().find(|peer| peer.name == name);
            let peer = peer.ok_or_else(|| Failure::Usage(format!("there is no client `{}`", name.escape_debug())))?;
            peer.allowed_ips.retain(|network| network.prefix_len() == network.max_prefix_len());
            peer.allowed_ips.extend(&behind);
            let networks = peer.allowed_ips.clone();
            self.promises()?.sites.insert(name.to_owned(), networks);
            self.write(file)?;
        } else if let Some(network) = behind.first() {
            return Err(Failure::Usage(format!(
                "--lan {network}: this machine has no such network; if it is behind a client, --client NAME says which"
            )));
        }
        self.promises()?.open.extend(open);
        self.promise(arguments, &[])?;
        output::print(&format!("{}: changed\n", self.interface))
    }

    /// Changes forwarded ports, and whether clients reach each other. `coming` are the networks behind a client that is
    /// about to be added.
    pub(super) fn promise(&mut self, arguments: &SetupServer, coming: &[IpNet]) -> Result<(), Failure> {
        let file = self.peers()?;
        let peers = file.peers.clone();
        drop(file);
        for (protocol, port) in &arguments.remove_forward {
            self.promises()?.forwards.retain(|forward| (forward.protocol, forward.port) != (*protocol, *port));
        }
        for forward in &arguments.forward {
            let forward = self.forward(forward, &peers, arguments.first_client(), coming)?;
            let forwards = &mut self.promises()?.forwards;
            forwards.retain(|other| (other.protocol, other.port) != (forward.protocol, forward.port));
            forwards.push(forward);
        }
        if let Some(word) = &arguments.between_clients {
            self.promises()?.between_clients = word == "yes";
        }
        self.keep()
    }

    /// A forward with the address of its target.
    fn forward(
        &self,
        argument: &ForwardArgument,
        peers: &[EnrolledPeer],
        first: &str,
        coming: &[IpNet],
    ) -> Result<Forward, Failure> {
        let ForwardArgument { protocol, port, target, target_port } = argument;
        let (protocol, port) = (*protocol, *port);
        let refuse = |reason: String| Failure::Usage(format!("--forward {}:{port}: {reason}", protocol.name()));
        if protocol.name() == "udp" && port == self.info.port {
            return Err(refuse("this is the tunnel's own port".into()));
        }
        let of_client = || peers.iter().find(|peer| peer.name == *target)?.allowed_ips.first().map(IpNet::addr);
        let first_to_come = || {
            (peers.is_empty() && target == first)
                .then(|| self.free_addresses(peers).ok()?.first().map(IpNet::addr))
                .flatten()
        };
        let address = target.parse().ok().or_else(of_client).or_else(first_to_come);
        let address: IpAddr =
            address.ok_or_else(|| refuse(format!("there is no client `{target}`; --list names them")))?;
        let networks = self.config.interface.addresses.iter().map(IpNet::trunc);
        let mut known = peers.iter().flat_map(|peer| peer.allowed_ips.iter().copied()).chain(coming.iter().copied());
        if !known.any(|network| network.contains(&address))
            && !networks.into_iter().any(|network| network.contains(&address))
        {
            return Err(refuse(format!(
                "{address} is behind no client: `ropewalk setup server --client NAME --lan NETWORK` assigns its network to one"
            )));
        }
        Ok(Forward { protocol, port, to: (address, *target_port).into() })
    }

    /// Writes the promises, and has them applied.
    fn keep(&self) -> Result<(), Failure> {
        self.record.write().map_err(environment)?;
        keep::look(&self.interface);
        Ok(())
    }

    /// Refuses networks behind a client that others have.
    fn check_lans(&self, lans: &[IpNet], name: &str, peers: &[EnrolledPeer]) -> Result<(), Failure> {
        let of_others = peers.iter().filter(|peer| peer.name != name).flat_map(|peer| {
            peer.allowed_ips.iter().map(move |network| (*network, format!("the client {} has", peer.name)))
        });
        let of_host = host::addresses().into_iter().map(|own| (own.network.trunc(), "this machine has".to_owned()));
        let taken: Vec<_> = of_others.chain(of_host).collect();
        for (index, lan) in lans.iter().enumerate() {
            let twice = lans[..index].iter().map(|other| (*other, "is given, too".to_owned()));
            let clash = taken.iter().cloned().chain(twice).find(|(network, _)| overlap(*network, *lan));
            if let Some((network, whose)) = clash {
                return Err(Failure::Usage(format!("--lan {lan} overlaps {network}, which {whose}")));
            }
            if lan.prefix_len() < 8 {
                return Err(Failure::Usage(format!(
                    "--lan {lan} is too large for a network behind a client: at least /8"
                )));
            }
        }
        Ok(())
    }

    /// Adds a client and prints its token.
    pub(super) fn add(&mut self, name: &str, options: &NewClient, lans: &[IpNet]) -> Result<(), Failure> {
        let row = NewRow { line: 0, name: name.to_owned(), lans: lans.to_vec(), expires: options.expires };
        let tokens = self.add_all(&[row], options.token_hours).map_err(|errors| bulk::failure(None, errors))?;
        if options.json { print_as_json(&tokens) } else { print_token(&tokens[0], options.token_hours) }
    }

    /// Adds clients, all or none. Returns their tokens.
    pub(super) fn add_all(&mut self, rows: &[NewRow], hours: u32) -> Result<Vec<Token>, BulkError> {
        let mut file = self.peers()?;
        let now = unix_time();
        // A token that was never used leaves nothing behind.
        let is_over = |peer: &EnrolledPeer| {
            rows.iter().any(|row| row.name == peer.name) && peer.token_expires.is_some_and(|end| end <= now)
        };
        let unused: Vec<_> = file.peers.extract_if(.., |peer| is_over(peer)).collect();
        let expires = u32::try_from(now + u64::from(hours) * 3600).unwrap_or(u32::MAX);
        let (mut tokens, mut errors) = (Vec::new(), Vec::new());
        for row in rows {
            match self.new_token(row, &file.peers, expires) {
                Ok(token) => {
                    file.peers.push(peer_of(&token, row));
                    tokens.push(token);
                }
                Err(error) => errors.push((row.line, error)),
            }
        }
        if !errors.is_empty() {
            return Err(BulkError::Rows(errors));
        }
        let objects: Vec<_> = rows.iter().map(|row| (row.name.clone(), row.detail())).collect();
        audit::note_all(&self.interface, "add", &objects)?;
        unused.iter().for_each(|peer| self.forget(peer));
        for (row, peer) in rows.iter().zip(file.peers.iter().rev().take(rows.len()).rev()) {
            if !row.lans.is_empty() {
                self.promises()?.sites.insert(row.name.clone(), peer.allowed_ips.clone());
            }
        }
        self.write(file)?;
        self.keep()?;
        Ok(tokens)
    }

    /// The token of a new client, if its name, its networks and its addresses are free.
    fn new_token(&self, row: &NewRow, peers: &[EnrolledPeer], expires: u32) -> Result<Token, String> {
        let text = |failure: Failure| failure.to_string().trim_start_matches("error: ").to_owned();
        let name = &row.name;
        check_name(name).map_err(text)?;
        if peers.iter().any(|peer| peer.name == *name) {
            return Err(format!(
                "there is a client `{name}` already: --revoke {name} removes it from {}",
                self.interface
            ));
        }
        let Mode::Ropewalk { private_key } = &self.config.mode else {
            return Err("tokens are for mode \"ropewalk\"".into());
        };
        self.check_lans(&row.lans, name, peers).map_err(text)?;
        Ok(Token {
            expires,
            port: self.info.port,
            private_key: PrivateKey::generate(&mut SystemEntropy),
            preshared_key: PresharedKey::generate(&mut SystemEntropy),
            server_key: private_key.public_key(),
            addresses: self.free_addresses(peers).map_err(text)?,
            endpoints: self.info.endpoints.clone(),
            dns: self.info.dns.clone(),
            name: name.clone(),
            lans: row.lans.clone(),
        })
    }

    /// Removes clients, whose sessions end, all or none.
    ///
    /// A process that holds the lock of the list cannot prevent a revocation, and neither can a full file of changes.
    pub(super) fn revoke_all(&mut self, names: &[(usize, String)]) -> Result<(), BulkError> {
        let without_lock = |error: Failure| -> Result<_, Failure> {
            let file = PeersFile::open_without_lock(&self.peers_file).map_err(Failure::Configuration)?;
            output::warn(&format!("note: the list of peers is written without its lock: {error}"));
            Ok(file)
        };
        let mut file = self.peers().or_else(without_lock)?;
        check_known(names, &file.peers)?;
        let objects: Vec<_> = names.iter().map(|(_, name)| (name.clone(), String::new())).collect();
        let noted = audit::note_all(&self.interface, "revoke", &objects);
        noted.unwrap_or_else(|error| output::warn(&format!("note: the change is not in the list of changes: {error}")));
        let removed: Vec<_> =
            file.peers.extract_if(.., |peer| names.iter().any(|(_, name)| *name == peer.name)).collect();
        self.write(file)?;
        removed.iter().for_each(|peer| self.forget(peer));
        self.keep()?;
        Ok(())
    }

    /// Gives clients other names, all or none.
    pub(super) fn rename_all(&mut self, names: &[(usize, String, String)]) -> Result<(), BulkError> {
        let mut file = self.peers()?;
        check_known(&names.iter().map(|(line, old, _)| (*line, old.clone())).collect::<Vec<_>>(), &file.peers)?;
        let new_name = |name: &str| names.iter().find(|(_, old, _)| old == name).map(|(.., new)| new.clone());
        let all: Vec<_> =
            file.peers.iter().map(|peer| new_name(&peer.name).unwrap_or_else(|| peer.name.clone())).collect();
        let wrong = |(line, _, new): &(usize, String, String)| {
            let is_twice = all.iter().filter(|name| *name == new).count() > 1;
            let of_name = check_name(new).err().map(|error| error.to_string().trim_start_matches("error: ").to_owned());
            let error = of_name.or_else(|| is_twice.then(|| format!("there would be two clients `{new}`")));
            error.map(|error| (*line, error))
        };
        let errors: Vec<_> = names.iter().filter_map(wrong).collect();
        if !errors.is_empty() {
            return Err(BulkError::Rows(errors));
        }
        let objects: Vec<_> = names.iter().map(|(_, old, new)| (old.clone(), format!("to {new}"))).collect();
        audit::note_all(&self.interface, "rename", &objects)?;
        file.peers.iter_mut().zip(all).for_each(|(peer, name)| peer.name = name);
        if let Some(promises) = &mut self.record.promises.server {
            let sites = std::mem::take(&mut promises.sites);
            promises.sites = sites.into_iter().map(|(name, site)| (new_name(&name).unwrap_or(name), site)).collect();
        }
        self.write(file)?;
        self.keep()?;
        Ok(())
    }

    /// Sets the ends of clients' times, all or none.
    pub(super) fn expire_all(&mut self, ends: &[(usize, String, Option<u64>)]) -> Result<(), BulkError> {
        let mut file = self.peers()?;
        check_known(&ends.iter().map(|(line, name, _)| (*line, name.clone())).collect::<Vec<_>>(), &file.peers)?;
        let objects: Vec<_> = ends.iter().map(|(_, name, end)| (name.clone(), end_text(*end))).collect();
        audit::note_all(&self.interface, "expire", &objects)?;
        for peer in &mut file.peers {
            if let Some((.., end)) = ends.iter().find(|(_, name, _)| *name == peer.name) {
                peer.expires = *end;
            }
        }
        self.write(file)?;
        Ok(())
    }

    /// Announces to the clients where the server will be.
    pub(super) fn announce_move(&self, hosts: &[String]) -> Result<(), Failure> {
        let endpoints = match hosts {
            [none] if none == "none" => Vec::new(),
            hosts => endpoints(hosts, self.info.port)?,
        };
        let path = announcement_file(&self.interface);
        let failed = |error| Failure::Environment(format!("{}: {error}", path.display()));
        let announcement = Announcement { endpoints: endpoints.clone(), ..Announcement::read(&path).map_err(failed)? };
        audit::note(&self.interface, "move", &self.interface, &format!("to {}", hosts.join(", ")))?;
        announcement.write(&path).map_err(failed)?;
        if endpoints.is_empty() {
            return output::print("no other address is announced\n");
        }
        output::print(&format!(
            "announced: {}. Clients that are connected fetch it within ten minutes, and `ropewalk setup server --list` shows \
             which have it. Then: `--backup FILE` and `ropewalk setup remove` here, `--restore FILE` there\n",
            endpoints.join(", ")
        ))
    }

    /// The record of the setup.
    pub(super) fn record(&self) -> &Record {
        &self.record
    }

    /// The clients, for reading.
    pub(super) fn peers_without_lock(&self) -> Result<Vec<EnrolledPeer>, Failure> {
        PeersFile::open_without_lock(&self.peers_file).map(|file| file.peers).map_err(Failure::Configuration)
    }

    /// Ends the promises to a client that is removed: another client may get its address.
    fn forget(&mut self, peer: &EnrolledPeer) {
        // A setup of version 0.1.0 has made no promises.
        let Some(promises) = &mut self.record.promises.server else { return };
        promises.sites.remove(&peer.name);
        let is_behind = |forward: &Forward| peer.allowed_ips.iter().any(|network| network.contains(&forward.to.ip()));
        promises.forwards.retain(|forward| !is_behind(forward));
    }

    fn peers(&self) -> Result<PeersFile, Failure> {
        PeersFile::open(&self.peers_file).map_err(Failure::Configuration)
    }

    /// Writes the file for the daemon's user, and makes a running daemon read it.
    fn write(&self, file: PeersFile) -> Result<(), Failure> {
        let written = file.folder_owner().and_then(|owner| file.write(Some(owner)));
        written.map_err(|error| Failure::Environment(format!("{}: {error}", self.peers_file.display())))?;
        drop(file);
        match Client::new(&runtime_directory(), &self.interface).request("POST", "/v1/reload", "") {
            Ok(_) => Ok(()),
            Err(ClientError::NotRunning { .. }) => {
                output::warn(&format!("note: {} is down; it reads this when it starts", self.interface));
                Ok(())
            }
            Err(error) => Err(Failure::Environment(format!("written, but not read by the daemon: {error}"))),
        }
    }

    /// The first free address of each inner network, with the same number in all networks.
    fn free_addresses(&self, peers: &[EnrolledPeer]) -> Result<Vec<IpNet>, Failure> {
        let networks = &self.config.interface.addresses;
        let taken: std::collections::BTreeSet<IpAddr> = {
            let of_config = self.config.peers.iter().flat_map(|peer| &peer.allowed_ips);
            let of_file = peers.iter().flat_map(|peer| &peer.allowed_ips);
            of_config.chain(of_file).map(IpNet::addr).collect()
        };
        let is_own = |address: IpAddr| {
            networks.iter().any(|network| network.addr() == address || server_address(*network) == Some(address))
        };
        // As many as in the largest network that is plausible for clients.
        for index in 2..1 << 20 {
            let addresses: Option<Vec<_>> = networks.iter().map(|network| nth_address(*network, index)).collect();
            let Some(addresses) = addresses else { break };
            if addresses.iter().all(|address| !taken.contains(address) && !is_own(*address)) {
                let with_prefix = addresses.into_iter().zip(networks);
                let with_prefix = with_prefix.map(|(address, network)| IpNet::new(address, network.prefix_len()));
                return with_prefix.collect::<Result<_, _>>().map_err(|error| Failure::Environment(error.to_string()));
            }
        }
        let networks: Vec<_> = networks.iter().map(ToString::to_string).collect();
        Err(Failure::Environment(format!("all addresses of {} are taken: --revoke frees some", networks.join(", "))))
    }
}

/// Refuses an invalid name of a client.
pub(super) fn check_name(name: &str) -> Result<(), Failure> {
    if is_peer_name(name) {
        return Ok(());
    }
    Err(Failure::Usage(format!("`{}` is not a name of a client: {PEER_NAME_HELP}", name.escape_debug())))
}

/// `2026-11-23 03:25 UTC`.
pub(crate) fn date(seconds: u64) -> String {
    match OffsetDateTime::from_unix_timestamp(i64::try_from(seconds).unwrap_or(i64::MAX)) {
        Ok(date) => format!("{} {:02}:{:02} UTC", date.date(), date.hour(), date.minute()),
        Err(_) => format!("second {seconds}"),
    }
}

/// `never`, or a date.
pub(super) fn end_text(end: Option<u64>) -> String {
    end.map_or_else(|| "never".to_owned(), date)
}

/// What is to be known of a new client but its name and its networks.
pub(super) struct NewClient {
    /// How long its token is valid.
    pub(super) token_hours: u32,
    /// The end of its time, Unix time in seconds.
    pub(super) expires: Option<u64>,
    /// Whether its token is printed as JSON.
    pub(super) json: bool,
}

/// A new client, and its line in a table.
pub(super) struct NewRow {
    pub(super) line: usize,
    pub(super) name: String,
    pub(super) lans: Vec<IpNet>,
    pub(super) expires: Option<u64>,
}

impl NewRow {
    fn detail(&self) -> String {
        let lans = self.lans.iter().map(|lan| format!("lan {lan}"));
        let end = self.expires.map(|end| format!("expires {}", date(end)));
        lans.chain(end).collect::<Vec<_>>().join(", ")
    }
}

fn peer_of(token: &Token, row: &NewRow) -> EnrolledPeer {
    let own = token.addresses.iter().map(|address| IpNet::from(address.addr()));
    EnrolledPeer {
        name: row.name.clone(),
        public_key: token.private_key.public_key(),
        preshared_key: Some(token.preshared_key.clone()),
        allowed_ips: own.chain(row.lans.iter().copied()).collect(),
        token_expires: Some(u64::from(token.expires)),
        expires: row.expires,
    }
}

/// Refuses names that no client has, or that stand twice.
fn check_known(names: &[(usize, String)], peers: &[EnrolledPeer]) -> Result<(), BulkError> {
    let all: Vec<_> = peers.iter().map(|peer| peer.name.as_str()).collect();
    let listed = if all.is_empty() { "there are none".to_owned() } else { all.join(", ") };
    let wrong = |(index, (line, name)): (usize, &(usize, String))| {
        if !all.contains(&name.as_str()) {
            return Some((*line, format!("there is no client `{}`: {listed}", name.escape_debug())));
        }
        let is_twice = names[..index].iter().any(|(_, other)| other == name);
        is_twice.then(|| (*line, format!("`{name}` stands twice")))
    };
    let errors: Vec<_> = names.iter().enumerate().filter_map(wrong).collect();
    if errors.is_empty() { Ok(()) } else { Err(BulkError::Rows(errors)) }
}
