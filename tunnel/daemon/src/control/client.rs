//! The other end of the socket: how `ropewalk show` and the other verbs speak with a running daemon.

use super::state::socket_path;
use crate::status::Status;
use std::fmt;
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long a daemon may take to answer: longer than it waits for its own data plane.
const PATIENCE: Duration = Duration::from_secs(10);

/// One daemon.
#[derive(Clone, Debug)]
pub struct Client {
    socket: PathBuf,
    interface: String,
}

/// Why there is no answer.
#[derive(Debug)]
pub enum ClientError {
    /// Nobody listens: no such tunnel is up.
    NotRunning {
        /// Its name.
        interface: String,
    },
    /// The socket refuses this user, or breaks.
    Socket {
        /// The socket.
        socket: PathBuf,
        /// Why.
        cause: io::Error,
    },
    /// The daemon says no, and why.
    Refused(String),
}

impl fmt::Display for ClientError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotRunning { interface } => write!(f, "no tunnel {interface} is up (`ropewalk up FILE` starts one)"),
            Self::Socket { socket, cause } if cause.kind() == io::ErrorKind::PermissionDenied => {
                write!(f, "{} is not for this user: try as root", socket.display())
            }
            Self::Socket { socket, cause } => write!(f, "{}: {cause}", socket.display()),
            Self::Refused(why) => f.write_str(why.trim_end()),
        }
    }
}

impl std::error::Error for ClientError {}

impl Client {
    /// The daemon of `interface`, whose socket lies in `folder`.
    #[must_use]
    pub fn new(folder: &Path, interface: &str) -> Self {
        Self { socket: socket_path(folder, interface), interface: interface.to_owned() }
    }

    /// The interfaces whose sockets lie in `folder`, in the order of names.
    #[must_use]
    pub fn interfaces(folder: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        let names = entries.filter_map(|it| it.file_name().to_str()?.strip_suffix(".sock").map(str::to_owned));
        let mut names: Vec<_> = names.collect();
        names.sort();
        names
    }

    /// What the tunnel tells of itself.
    ///
    /// # Errors
    /// No daemon, or none that answers.
    pub fn status(&self) -> Result<Status, ClientError> {
        let body = self.request("GET", "/v1/status", "")?;
        serde_json::from_str(&body)
            .map_err(|error| ClientError::Refused(format!("the daemon's answer is of another version: {error}")))
    }

    /// One request; the answer's body.
    ///
    /// # Errors
    /// As [`Client::status`], or that the daemon refuses.
    pub fn request(&self, method: &str, path: &str, body: &str) -> Result<String, ClientError> {
        let socket = |cause: io::Error| match cause.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => {
                ClientError::NotRunning { interface: self.interface.clone() }
            }
            _ => ClientError::Socket { socket: self.socket.clone(), cause },
        };
        let answer = self.exchange(method, path, body).map_err(socket)?;
        let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
        match head.split(' ').nth(1) {
            Some("200") => Ok(body.to_owned()),
            _ => Err(ClientError::Refused(body.to_owned())),
        }
    }

    /// HTTP/1.1 with the connection closed behind it: a body that the server knows whole comes as it is.
    fn exchange(&self, method: &str, path: &str, body: &str) -> io::Result<String> {
        let mut stream = UnixStream::connect(&self.socket)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let length = body.len();
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: text/plain\r\n\
             Content-Length: {length}\r\n\r\n{body}"
        )?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok(answer)
    }
}
