//! The daemon's HTTP servers. The constructor of each sets its access rules and limits.

use super::run_folder;
use crate::dashboard::{Access, GuardedListener, serve};
use axum::Router;
use filesystem::Folder;
use nix::unistd::User;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;
use tokio::net::{TcpListener, UnixListener};
use zeroize::Zeroizing;

/// The longest time without an answer on the control socket: a reload may look up names.
const MAX_CONTROL_TIME: Duration = Duration::from_secs(120);

/// A listener and its access rules.
pub(super) struct Server {
    listener: Listener,
    access: Access,
}

enum Listener {
    Tcp(GuardedListener<TcpListener>),
    Unix(GuardedListener<UnixListener>),
}

impl Server {
    /// Listens on a TCP address, for clients with the token; or, on loopback, for clients on this machine.
    ///
    /// # Errors
    /// The address cannot be bound, or has no token and is not on loopback.
    pub(super) async fn tcp(address: SocketAddr, token: Option<Zeroizing<String>>) -> io::Result<Self> {
        let at_address = |error: io::Error| io::Error::new(error.kind(), format!("{address}: {error}"));
        let listener = TcpListener::bind(address).await.map_err(at_address)?;
        let access = Access::of_tcp(listener.local_addr()?, token)?;
        Ok(Self { listener: Listener::Tcp(GuardedListener::new(listener)), access })
    }

    /// Listens on a unix socket of `user`, for clients that can open it and have the token, if there is one.
    ///
    /// # Errors
    /// The socket cannot be made.
    pub(super) fn unix(path: &Path, user: Option<&User>, token: Option<Zeroizing<String>>) -> io::Result<Self> {
        let at_path = |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", path.display()));
        let listener = GuardedListener::new(listen_unix(path, user).map_err(at_path)?);
        Ok(Self { listener: Listener::Unix(listener), access: token.map_or(Access::Socket, Access::Token) })
    }

    /// The control socket.
    pub(super) fn control(listener: UnixListener) -> Self {
        let listener = GuardedListener::new(listener).with_max_unanswered(MAX_CONTROL_TIME);
        Self { listener: Listener::Unix(listener), access: Access::Socket }
    }

    /// The TCP address that it listens on.
    pub(super) fn local_address(&self) -> Option<SocketAddr> {
        match &self.listener {
            Listener::Tcp(listener) => axum::serve::Listener::local_addr(listener).ok(),
            Listener::Unix(_) => None,
        }
    }

    /// Serves on a task of its own.
    pub(super) fn start(self, routes: Router) {
        match self.listener {
            Listener::Tcp(listener) => tokio::spawn(serve(listener, self.access, routes)),
            Listener::Unix(listener) => tokio::spawn(serve(listener, self.access, routes)),
        };
    }
}

/// A socket that its owner and its group may open. It replaces a socket that an earlier daemon left, but no other file.
pub(crate) fn listen_unix(path: &Path, user: Option<&User>) -> io::Result<UnixListener> {
    let (folder, name) = Folder::of_file(path)?;
    folder.remove_socket(&name)?;
    UnixListener::from_std(run_folder::listen(&folder, &name, user)?)
}
