//! Sends a file in quinn with its sockets and TLS 1.3, under a congestion control of Ropewalk.
//!
//! Over loopback:
//!
//!     cargo run --package ropewalk-quinn --example send_file -- cubic FILE
//!
//! To another host or network namespace:
//!
//!     send_file receive 0.0.0.0:4433 COPY
//!     send_file cubic FILE 10.88.0.2:4433

use quinn::{ClientConfig, ConnectionStats, Endpoint, ServerConfig, TransportConfig, VarInt};
use ropewalk_quinn::{Factory, Params};
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use std::error::Error;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

pub(crate) type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

/// A certificate for `localhost` that is valid until 2119, with the Ed25519 key of the example in RFC 8410, section 10.3.
/// Everybody knows it.
const CERTIFICATE: &[u8] = include_bytes!("tls/certificate.der");
const KEY: &[u8] = include_bytes!("tls/key.der");
const NAME: &str = "localhost";

/// The configuration of a receiver.
pub(crate) fn server_config() -> Result<ServerConfig> {
    let key = PrivatePkcs8KeyDer::from(KEY);
    Ok(ServerConfig::with_single_cert(vec![CertificateDer::from(CERTIFICATE)], key.into())?)
}

/// The configuration of any number of connections.
fn client_config(algorithm: &str) -> Result<ClientConfig> {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(CertificateDer::from(CERTIFICATE))?;
    let mut config = ClientConfig::with_root_certificates(Arc::new(roots))?;
    let mut transport = TransportConfig::default();
    transport.congestion_controller_factory(Arc::new(Factory::new(algorithm, &Params::new())?));
    config.transport_config(Arc::new(transport));
    Ok(config)
}

/// Sends `data` to a receiver. Returns what is known of the connection in the end.
pub(crate) async fn send(
    client: Endpoint,
    algorithm: &str,
    address: SocketAddr,
    data: &[u8],
) -> Result<ConnectionStats> {
    let connection = client.connect_with(client_config(algorithm)?, address, NAME)?.await?;
    let mut stream = connection.open_uni().await?;
    stream.write_all(data).await?;
    stream.finish()?;
    stream.stopped().await?;
    let stats = connection.stats();
    connection.close(VarInt::from_u32(0), b"");
    client.wait_idle().await;
    Ok(stats)
}

/// Receives a file.
pub(crate) async fn receive(server: Endpoint) -> Result<Vec<u8>> {
    let connection = server.accept().await.ok_or("the endpoint is closed")?.await?;
    let data = connection.accept_uni().await?.read_to_end(usize::MAX).await?;
    connection.closed().await;
    Ok(data)
}

/// Sends `data` over loopback. Returns what arrived, and what is known of the connection.
pub(crate) async fn loop_back(algorithm: &str, data: &[u8]) -> Result<(Vec<u8>, ConnectionStats)> {
    let loopback = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let server = Endpoint::server(server_config()?, loopback)?;
    let address = server.local_addr()?;
    let receiving = tokio::spawn(receive(server));
    let stats = send(Endpoint::client(loopback)?, algorithm, address, data).await?;
    Ok((receiving.await??, stats))
}

fn print(stats: &ConnectionStats) {
    let path = &stats.path;
    println!(
        "{} packets sent, {} lost, {} congestion events; the window is {} bytes",
        path.sent_packets, path.lost_packets, path.congestion_events, path.cwnd
    );
}

async fn run(arguments: &[&str]) -> Result<()> {
    match arguments {
        ["receive", address, file] => {
            std::fs::write(file, receive(Endpoint::server(server_config()?, address.parse()?)?).await?)?;
        }
        [algorithm, file] => {
            let (received, stats) = loop_back(algorithm, &std::fs::read(file)?).await?;
            println!("{} bytes received", received.len());
            print(&stats);
        }
        [algorithm, file, address] => {
            let client = Endpoint::client(SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)))?;
            print(&send(client, algorithm, address.parse()?, &std::fs::read(file)?).await?);
        }
        _ => return Err("arguments: ALGORITHM FILE [ADDRESS], or: receive ADDRESS FILE".into()),
    }
    Ok(())
}

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(run(&arguments))
}
