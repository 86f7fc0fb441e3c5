//! The client's enrolment: the tunnel with the token's one-time key, in which the server learns the client's own.

use super::client::config_text;
use super::clients;
use super::record::folder;
use super::service::own_program;
use super::token::Token;
use crate::{Failure, output};
use daemon::config::ClientIdentity;
use daemon::control_plane::{Client, EnrolError, enrol as enrol_client, running_tunnel};
use daemon::event::CauseKind;
use daemon::status::PeerStatus;
use ipnet::IpNet;
use seal::{PresharedKey, PrivateKey};
use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io::Write as _;
use std::net::IpAddr;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The time for a session and its answer.
const TIMEOUT: Duration = Duration::from_secs(20);
/// The time for the server's answer to the first handshakes; three are sent in that time.
const SILENCE: Duration = Duration::from_secs(5);
/// The directory of the socket during the enrolment: that of the service may belong to its user.
const RUN: &str = "/run/ropewalk-setup";

/// This host's own keys.
#[derive(Clone, Debug)]
pub(super) struct OwnKeys {
    pub(super) private_key: PrivateKey,
    pub(super) preshared_key: PresharedKey,
}

/// The result of an enrolment.
#[derive(Clone, Debug)]
pub(super) struct Enrolled {
    /// The networks that the server has accepted; `None` if it already had this host's key.
    pub(super) taken: Option<Vec<IpNet>>,
    /// Whether the server has this host's preshared key. A server of an earlier version keeps the token's.
    pub(super) has_new_psk: bool,
}

/// Sends this host's keys and the networks `lans` to the server. If the setup was interrupted before, the server may
/// already have the keys, which a session with them proves.
pub(super) fn enrol(
    name: &str,
    token: &Token,
    endpoints: &BTreeSet<String>,
    own: &OwnKeys,
    is_resumed: bool,
    lans: &[IpNet],
) -> Result<Enrolled, Failure> {
    output::warn("enrolling with the server ...");
    let of_token = OwnKeys { private_key: token.private_key.clone(), preshared_key: token.preshared_key.clone() };
    let without_new_psk = OwnKeys { preshared_key: token.preshared_key.clone(), ..own.clone() };
    let client = ClientIdentity {
        public_key: own.private_key.public_key(),
        preshared_key: Some(own.preshared_key.clone()),
        lans: lans.to_vec(),
    };
    let mut outcome = try_with(name, token, &of_token, Some(client));
    for (keys, has_new_psk) in [(own, true), (&without_new_psk, false)] {
        if is_resumed && matches!(outcome, Err(Attempt::NoSession(_))) {
            outcome = try_with(name, token, keys, None).map(|_| Enrolled { taken: None, has_new_psk });
        }
    }
    outcome.map_err(|attempt| match attempt {
        Attempt::Failed(reason) => Failure::Environment(reason),
        Attempt::NoSession(causes) => Failure::Environment(no_session(token, endpoints, &causes)),
    })
}

/// The reason why there is no session: the faults found here, otherwise the possible reasons of a server's silence. A server
/// does not answer an unknown key, so that nobody can find out which tokens exist.
fn no_session(token: &Token, endpoints: &BTreeSet<String>, causes: &[String]) -> String {
    let endpoints = endpoints.iter().map(String::as_str).collect::<Vec<_>>().join(" or ");
    let why = if causes.is_empty() {
        format!(
            "the token was already used (it works once, and was valid until {}) or revoked, or UDP port {} is closed at the \
             server or at a router before it; on the server, `ropewalk setup server --list` shows whether the token is \
             waiting, and `--add NAME` makes another one",
            clients::date(u64::from(token.expires)),
            token.port
        )
    } else {
        causes.join("; ")
    };
    format!(
        "no answer from {endpoints} for this token: {why}\n  help: the tunnel is not started; the same command tries again, \
         and `ropewalk setup remove` undoes what it has written"
    )
}

/// The reason why an attempt failed.
enum Attempt {
    /// No session, with the faults found on this host's paths.
    NoSession(Vec<String>),
    /// Any other reason.
    Failed(String),
}

/// A daemon that ends with this value.
struct Daemon {
    child: Child,
    client: Client,
    files: Vec<PathBuf>,
}

impl Drop for Daemon {
    fn drop(&mut self) {
        if self.client.request("POST", "/v1/down", "").is_err() {
            let _ = self.child.kill();
        }
        let _ = self.child.wait();
        self.files.iter().for_each(|file| drop(fs::remove_file(file)));
        let _ = fs::remove_dir(RUN);
    }
}

/// Brings the tunnel up with `keys`, and sends the client's keys to the server; without a client a session is enough.
fn try_with(
    name: &str,
    token: &Token,
    keys: &OwnKeys,
    mut client: Option<ClientIdentity>,
) -> Result<Enrolled, Attempt> {
    let Some(server) = token.server_addresses().first().copied() else {
        return Err(Attempt::Failed("the token names no address".into()));
    };
    let mut daemon = start(name, token, keys, server).map_err(Attempt::Failed)?;
    let start = Instant::now();
    let mut first_handshake = None;
    loop {
        if daemon.child.try_wait().is_ok_and(|status| status.is_some()) {
            let log = daemon.files.last().and_then(|log| fs::read_to_string(log).ok()).unwrap_or_default();
            let lines: String = log.lines().map(|line| format!("\n  {line}")).collect();
            return Err(Attempt::Failed(format!("the tunnel does not start:{lines}")));
        }
        let peers = daemon.client.status().map_or_else(|_| Vec::new(), |status| status.peers);
        let has_session = peers.iter().any(|peer| peer.handshake_age_ms.is_some());
        if first_handshake.is_none() && peers.iter().any(|peer| peer.handshake_attempts > 0) {
            first_handshake = Some(Instant::now());
        }
        let is_silent = !has_session && first_handshake.is_some_and(|first| first.elapsed() > SILENCE);
        if is_silent || start.elapsed() > TIMEOUT {
            return Err(Attempt::NoSession(causes(&peers)));
        }
        if has_session {
            let has_new_psk = client.as_ref().is_some_and(|client| client.preshared_key.is_some());
            match client.as_ref().map(|client| enrol_client(server, client)).transpose() {
                Ok(taken) => return Ok(Enrolled { taken, has_new_psk }),
                Err(error) if error.is_unknown_line() => client = client.map(shorter),
                Err(EnrolError::Refused(reason)) if !reason.contains("try again") => {
                    return Err(Attempt::Failed(format!("the server refuses: {reason}")));
                }
                // A connection fails until the first path works, and while another connection is served.
                Err(_) => {}
            }
        }
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// The request for a server of an earlier version, which accepts no preshared key, or no networks either.
fn shorter(client: ClientIdentity) -> ClientIdentity {
    let lans = if client.preshared_key.is_some() { client.lans } else { Vec::new() };
    ClientIdentity { preshared_key: None, lans, ..client }
}

/// The faults of the paths that this host and the network have reported, without the server's silence, which may have other
/// reasons.
fn causes(peers: &[PeerStatus]) -> Vec<String> {
    let is_silence = |kind| matches!(kind, CauseKind::SilentPath | CauseKind::NoHandshake | CauseKind::SilentPeer);
    let paths = peers.iter().flat_map(|peer| &peer.paths);
    let found =
        paths.filter_map(|path| Some((&path.name, path.cause.as_ref().filter(|cause| !is_silence(cause.kind))?)));
    found.map(|(name, cause)| format!("{name}: {} ({})", cause.text, cause.remedy)).collect()
}

fn start(name: &str, token: &Token, keys: &OwnKeys, server: IpAddr) -> Result<Daemon, String> {
    let [config, psk, log] = ["toml", "psk", "log"].map(|extension| folder().join(format!("{name}.enrol.{extension}")));
    let interface =
        format!("name = \"{name}\"\nhistory = \"off\"\nprivate-key = \"{}\"\n", *keys.private_key.to_text());
    let text = config_text(token, &interface, &psk.display().to_string(), &[IpNet::from(server)]);
    let text = zeroize::Zeroizing::new(text);
    end_leftover(name)?;
    write_secret(&config, &text)?;
    write_secret(&psk, &keys.preshared_key.to_text())?;
    let output = write_secret(&log, "")?;
    let child = Command::new(own_program())
        .arg("up")
        .arg(&config)
        .args(["--parent", &std::process::id().to_string()])
        .env("ROPEWALK_RUN", RUN)
        // Files that it would keep there would belong to root, and the daemon may be another user.
        .env("STATE_DIRECTORY", "")
        .env("RUST_LOG", "warn")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(output)
        .spawn()
        .map_err(|error| error.to_string())?;
    Ok(Daemon { child, client: Client::new(Path::new(RUN), name), files: vec![config, psk, log] })
}

/// Ends the daemon of an enrolment whose setup was killed.
fn end_leftover(name: &str) -> Result<(), String> {
    let start = Instant::now();
    while let Some(state) = running_tunnel(Path::new(RUN), name) {
        if start.elapsed() > TIMEOUT {
            return Err(format!("an earlier enrolment does not end: kill {}", state.pid));
        }
        // Its socket may not exist yet, or no longer.
        let _ = Client::new(Path::new(RUN), name).request("POST", "/v1/down", "");
        std::thread::sleep(Duration::from_millis(100));
    }
    Ok(())
}

/// Writes a file that only root may read, replacing an earlier one.
fn write_secret(path: &Path, text: &str) -> Result<File, String> {
    let write = || {
        let _ = fs::remove_file(path);
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
        file.write_all(text.as_bytes()).map(|()| file)
    };
    write().map_err(|error: std::io::Error| format!("{}: {error}", path.display()))
}
