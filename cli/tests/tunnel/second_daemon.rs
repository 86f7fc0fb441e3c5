//! Another daemon on a host of a pair, and datagrams between addresses of both hosts.

use crate::tunnel_pair::{TunnelPair, program};
use daemon::control_plane::Client;
use std::fs;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicU16, Ordering::Relaxed};
use std::time::Duration;
use testing::eventually;

/// The device of the second daemon.
pub(crate) const SECOND_DEVICE: &str = "rw1";
/// The next port: none is used twice.
static PORTS: AtomicU16 = AtomicU16::new(15_000);

/// A daemon beside that of the pair, which ends when the value is dropped.
pub(crate) struct SecondDaemon {
    daemon: Child,
    folder: PathBuf,
}

impl SecondDaemon {
    /// Starts it on a host, with this configuration.
    pub(crate) fn start(pair: &TunnelPair, host: usize, configuration: &str) -> Self {
        let folder = pair.folder(host);
        let file = folder.join(format!("{SECOND_DEVICE}.toml"));
        fs::write(&file, configuration).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
        let mut command = pair.testbed.command(host, &program());
        command.env("ROPEWALK_RUN", &folder).env("RUST_LOG", "warn").stdin(Stdio::null());
        Self { daemon: command.arg("up").arg(&file).spawn().unwrap(), folder }
    }
}

impl Drop for SecondDaemon {
    fn drop(&mut self) {
        let _ = Client::new(&self.folder, SECOND_DEVICE).request("POST", "/v1/down", "");
        if !eventually(|| self.daemon.try_wait().is_ok_and(|ended| ended.is_some())) {
            let _ = self.daemon.kill().and_then(|()| self.daemon.wait());
        }
    }
}

/// Whether datagrams from an address of a host to one of the other come, and their answers come back, ten times.
pub(crate) fn is_reached(pair: &TunnelPair, from: usize, [source, address]: [&str; 2]) -> bool {
    let [source, address]: [IpAddr; 2] = [source, address].map(|address| address.parse().unwrap());
    let socket = |host: usize, address: SocketAddr| {
        let socket = pair.testbed.within(host, || Ok(UdpSocket::bind(address)?)).unwrap();
        socket.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
        socket
    };
    let receiver = socket(1 - from, SocketAddr::new(address, PORTS.fetch_add(1, Relaxed)));
    let sender = socket(from, SocketAddr::new(source, 0));
    (0..10_u8).all(|number| {
        eventually(|| {
            let mut request = [0; 64];
            let mut answer = [0; 64];
            // Without a route there is an error, until there is one.
            sender.send_to(&[number; 32], receiver.local_addr().unwrap()).is_ok()
                && receiver.recv_from(&mut request).is_ok_and(|(len, source)| {
                    receiver.send_to(&request[..len], source).is_ok() && sender.recv(&mut answer).is_ok()
                })
                && answer[..32] == [number; 32]
        })
    })
}
