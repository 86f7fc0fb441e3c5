//! The client of a daemon's socket, for `ropewalk show` and other commands.

use super::state_file::{running_tunnel, socket_path};
use crate::status::TunnelStatus;
use std::fmt;
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

/// The read timeout: longer than a daemon waits for its own data plane.
const TIMEOUT: Duration = Duration::from_secs(10);
/// The time for a daemon to end.
const END_TIMEOUT: Duration = Duration::from_secs(20);

/// A client of one daemon.
#[derive(Clone, Debug)]
pub struct Client {
    socket: PathBuf,
    interface: String,
}

/// Why a request failed.
#[derive(Debug)]
pub enum ClientError {
    /// No daemon listens on the socket.
    NotRunning {
        /// The tunnel's interface.
        interface: String,
    },
    /// The socket cannot be opened, or broke.
    Socket {
        /// The socket's path.
        socket: PathBuf,
        /// The system's error.
        cause: io::Error,
    },
    /// The daemon refused, with the reason.
    Refused(String),
    /// The daemon refused the configuration, with all of its errors.
    Configuration(String),
}

impl fmt::Display for ClientError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotRunning { interface } => write!(f, "no tunnel {interface} is up (`ropewalk up FILE` starts one)"),
            Self::Socket { socket, cause } if cause.kind() == io::ErrorKind::PermissionDenied => {
                write!(f, "{}: permission denied, try as root", socket.display())
            }
            Self::Socket { socket, cause } => write!(f, "{}: {cause}", socket.display()),
            Self::Refused(reason) | Self::Configuration(reason) => f.write_str(reason.trim_end()),
        }
    }
}

impl std::error::Error for ClientError {}

impl Client {
    /// A client of the daemon of `interface`, whose socket is in `directory`.
    #[must_use]
    pub fn new(directory: &Path, interface: &str) -> Self {
        Self { socket: socket_path(directory, interface), interface: interface.to_owned() }
    }

    /// The interfaces with a socket in `directory` on which a daemon listens, sorted.
    #[must_use]
    pub fn interfaces(directory: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
        let names = entries.filter_map(|entry| entry.file_name().to_str()?.strip_suffix(".sock").map(str::to_owned));
        let is_refused = |error: io::Error| error.kind() == io::ErrorKind::ConnectionRefused;
        let listens = |name: &String| !UnixStream::connect(socket_path(directory, name)).is_err_and(is_refused);
        let mut names: Vec<_> = names.filter(listens).collect();
        names.sort();
        names
    }

    /// Ends the daemon, and waits until its process has ended: then its device, ports and routes are free.
    ///
    /// # Errors
    /// Those of [`Self::request`]; the process has not ended after 20 s.
    pub fn down(&self) -> Result<(), ClientError> {
        let running = self.socket.parent().and_then(|directory| running_tunnel(directory, &self.interface));
        match (self.request("POST", "/v1/down", ""), &running) {
            // It is ending already.
            (Ok(_), _) | (Err(ClientError::NotRunning { .. }), Some(_)) => {}
            (Err(error), _) => return Err(error),
        }
        let Some(state) = running else { return Ok(()) };
        let start = Instant::now();
        while state.is_alive() {
            if start.elapsed() > END_TIMEOUT {
                let reason = format!("the process {} of {} has not ended after 20 s", state.pid, self.interface);
                return Err(ClientError::Refused(reason));
            }
            thread::sleep(Duration::from_millis(10));
        }
        Ok(())
    }

    /// Requests the status.
    ///
    /// # Errors
    /// No daemon runs, or it does not answer.
    pub fn status(&self) -> Result<TunnelStatus, ClientError> {
        let body = self.request("GET", "/v1/status", "")?;
        serde_json::from_str(&body)
            .map_err(|error| ClientError::Refused(format!("the daemon's status is of another version: {error}")))
    }

    /// Sends a request; returns the body of the response.
    ///
    /// # Errors
    /// As [`Client::status`], or the daemon refused.
    pub fn request(&self, method: &str, path: &str, body: &str) -> Result<String, ClientError> {
        let to_client_error = |cause: io::Error| match cause.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => {
                ClientError::NotRunning { interface: self.interface.clone() }
            }
            _ => ClientError::Socket { socket: self.socket.clone(), cause },
        };
        let response = self.exchange(method, path, body).map_err(to_client_error)?;
        let (head, body) = response.split_once("\r\n\r\n").unwrap_or((&response, ""));
        match head.split(' ').nth(1) {
            Some("200") => Ok(body.to_owned()),
            Some("422") => Err(ClientError::Configuration(body.to_owned())),
            _ => Err(ClientError::Refused(body.to_owned())),
        }
    }

    /// One HTTP/1.1 exchange with `Connection: close`. The server sends bodies of known length, never chunked.
    fn exchange(&self, method: &str, path: &str, body: &str) -> io::Result<String> {
        let mut stream = UnixStream::connect(&self.socket)?;
        stream.set_read_timeout(Some(TIMEOUT))?;
        let length = body.len();
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: text/plain\r\n\
             Content-Length: {length}\r\n\r\n{body}"
        )?;
        let mut response = String::new();
        stream.read_to_string(&mut response)?;
        Ok(response)
    }
}
