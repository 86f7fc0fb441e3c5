//! Sends a file in noq with its sockets and TLS 1.3, under a congestion control of Ropewalk.
//!
//! Over two paths of loopback:
//!
//!     cargo run --package ropewalk-noq --example send_file -- lia FILE
//!
//! To another host, or network namespace, which has an address for each path:
//!
//!     send_file receive 0.0.0.0:4433 COPY
//!     send_file lia FILE 10.88.0.2:4433 10.88.1.2:4433

use noq::{
    ClientConfig, Connection, Endpoint, FourTuple, PathError, PathId, PathStats, PathStatus, ServerConfig,
    TransportConfig, VarInt,
};
use ropewalk_noq::{Factory, Params};
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use std::error::Error;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

pub(crate) type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

/// A certificate for `localhost` that is valid until 2119, with the Ed25519 key of the example in RFC 8410, section 10.3.
/// Everybody knows it.
const CERTIFICATE: &[u8] = include_bytes!("tls/certificate.der");
const KEY: &[u8] = include_bytes!("tls/key.der");
const NAME: &str = "localhost";
/// Maximum number of paths of a connection.
const MAX_PATHS: u32 = 4;
/// Time without a packet after which a path is given up. noq has none by default, and a connection is lost with any of its paths:
/// data and acknowledgements that were sent over it are not sent over another one before.
const PATH_TIMEOUT: Duration = Duration::from_secs(5);
/// Time without a packet after which a path is asked for one. Acknowledgements of all paths return over one of them.
const PATH_KEEP_ALIVE: Duration = Duration::from_secs(1);

fn transport() -> TransportConfig {
    let mut transport = TransportConfig::default();
    transport.max_concurrent_multipath_paths(MAX_PATHS);
    transport.default_path_max_idle_timeout(Some(PATH_TIMEOUT));
    transport.default_path_keep_alive_interval(Some(PATH_KEEP_ALIVE));
    transport
}

/// The configuration of a receiver.
pub(crate) fn server_config() -> Result<ServerConfig> {
    let key = PrivatePkcs8KeyDer::from(KEY);
    let mut config = ServerConfig::with_single_cert(vec![CertificateDer::from(CERTIFICATE)], key.into())?;
    config.transport_config(Arc::new(transport()));
    Ok(config)
}

/// The configuration of one connection, which no other one may have: the paths of its factory belong together.
fn client_config(algorithm: &str) -> Result<ClientConfig> {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(CertificateDer::from(CERTIFICATE))?;
    let mut config = ClientConfig::with_root_certificates(Arc::new(roots))?;
    let mut transport = transport();
    transport.congestion_controller_factory(Arc::new(Factory::new(algorithm, &Params::new())?));
    config.transport_config(Arc::new(transport));
    Ok(config)
}

/// Opens a further path. The receiver must have issued connection IDs for it before.
async fn open_path(connection: &Connection, address: SocketAddr) -> Result<PathId> {
    loop {
        match connection.open_path(FourTuple::from_remote(address), PathStatus::Available).await {
            Ok(path) => return Ok(path.id()),
            Err(PathError::RemoteCidsExhausted | PathError::MaxPathIdReached) => {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            Err(error) => return Err(error.into()),
        }
    }
}

/// Sends `data` over one path to each address of a receiver. Returns what is known of the paths in the end; `None` for one that
/// was given up.
pub(crate) async fn send(
    client: Endpoint,
    algorithm: &str,
    addresses: &[SocketAddr],
    data: &[u8],
) -> Result<Vec<Option<PathStats>>> {
    let [first, others @ ..] = addresses else { return Err("no address".into()) };
    let connection = client.connect_with(client_config(algorithm)?, *first, NAME)?.await?;
    let mut paths = vec![PathId::ZERO];
    for address in others {
        paths.push(open_path(&connection, *address).await?);
    }
    let mut stream = connection.open_uni().await?;
    stream.write_all(data).await?;
    stream.finish()?;
    stream.stopped().await?;
    let stats = paths.into_iter().map(|path| connection.path_stats(path)).collect();
    connection.close(VarInt::from_u32(0), b"");
    client.wait_idle().await;
    Ok(stats)
}

/// Receives a file; `on_bytes` learns how many bytes of it are there.
pub(crate) async fn receive(server: Endpoint, mut on_bytes: impl FnMut(usize)) -> Result<Vec<u8>> {
    let connection = server.accept().await.ok_or("the endpoint is closed")?.await?;
    let mut stream = connection.accept_uni().await?;
    let mut data = Vec::new();
    while let Some(chunk) = stream.read_chunk(usize::MAX).await? {
        data.extend_from_slice(&chunk);
        on_bytes(data.len());
    }
    connection.closed().await;
    Ok(data)
}

/// Sends `data` over two paths of loopback. Returns what arrived, and what is known of the paths.
pub(crate) async fn loop_back(algorithm: &str, data: &[u8]) -> Result<(Vec<u8>, Vec<Option<PathStats>>)> {
    let any = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0));
    let server = Endpoint::server(server_config()?, any)?;
    let port = server.local_addr()?.port();
    let addresses = [1, 2].map(|host| SocketAddr::from((Ipv4Addr::new(127, 0, 0, host), port)));
    let receiving = tokio::spawn(receive(server, |_| {}));
    let stats = send(Endpoint::client(any)?, algorithm, &addresses, data).await?;
    Ok((receiving.await??, stats))
}

fn print(stats: &[Option<PathStats>]) {
    for (path, stats) in stats.iter().enumerate() {
        match stats {
            Some(stats) => println!(
                "path {path}: {} packets sent, {} lost, {} congestion events; the window is {} bytes",
                stats.sent_packets, stats.lost_packets, stats.congestion_events, stats.cwnd
            ),
            None => println!("path {path}: given up"),
        }
    }
}

async fn run(arguments: &[&str]) -> Result<()> {
    match arguments {
        ["receive", address, file] => {
            let data = receive(Endpoint::server(server_config()?, address.parse()?)?, |_| {}).await?;
            std::fs::write(file, data)?;
        }
        [algorithm, file] => {
            let (received, stats) = loop_back(algorithm, &std::fs::read(file)?).await?;
            println!("{} bytes received", received.len());
            print(&stats);
        }
        [algorithm, file, addresses @ ..] => {
            let addresses =
                addresses.iter().map(|address| address.parse()).collect::<std::result::Result<Vec<_>, _>>()?;
            let client = Endpoint::client(SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)))?;
            print(&send(client, algorithm, &addresses, &std::fs::read(file)?).await?);
        }
        _ => return Err("arguments: ALGORITHM FILE [ADDRESS...], or: receive ADDRESS FILE".into()),
    }
    Ok(())
}

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(run(&arguments))
}
