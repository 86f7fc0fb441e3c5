//! Sends a file over two paths of loopback, in noq with its sockets and TLS 1.3, under a congestion control of Ropewalk.
//!
//!     cargo run --package ropewalk-noq --example send_file -- lia FILE

use noq::{
    ClientConfig, Connection, Endpoint, FourTuple, PathError, PathId, PathStatus, ServerConfig, TransportConfig,
};
use ropewalk_noq::{Factory, Params};
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use std::error::Error;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

/// A certificate for `localhost` that is valid until 2119, with the Ed25519 key of the example in RFC 8410, section 10.3.
/// Everybody knows it.
const CERTIFICATE: &[u8] = include_bytes!("tls/certificate.der");
const KEY: &[u8] = include_bytes!("tls/key.der");
const NAME: &str = "localhost";
/// The addresses of the server, one for each path.
const ADDRESSES: [Ipv4Addr; 2] = [Ipv4Addr::new(127, 0, 0, 1), Ipv4Addr::new(127, 0, 0, 2)];

/// The configuration of one connection, which no other one may have.
fn transport(factory: Factory) -> Arc<TransportConfig> {
    let mut transport = TransportConfig::default();
    transport.max_concurrent_multipath_paths(ADDRESSES.len() as u32);
    transport.congestion_controller_factory(Arc::new(factory));
    Arc::new(transport)
}

fn server_config(factory: Factory) -> Result<ServerConfig> {
    let key = PrivatePkcs8KeyDer::from(KEY);
    let mut config = ServerConfig::with_single_cert(vec![CertificateDer::from(CERTIFICATE)], key.into())?;
    config.transport_config(transport(factory));
    Ok(config)
}

fn client_config(factory: Factory) -> Result<ClientConfig> {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(CertificateDer::from(CERTIFICATE))?;
    let mut config = ClientConfig::with_root_certificates(Arc::new(roots))?;
    config.transport_config(transport(factory));
    Ok(config)
}

/// Opens the second path. The server must have issued connection IDs for it before.
async fn open_second_path(connection: &Connection, port: u16) -> Result<PathId> {
    let address = SocketAddr::from((ADDRESSES[1], port));
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

/// Sends `data`; returns the windows of the two paths then, bytes.
async fn send(client: Endpoint, config: ClientConfig, port: u16, data: Vec<u8>) -> Result<[u64; 2]> {
    let connection = client.connect_with(config, SocketAddr::from((ADDRESSES[0], port)), NAME)?.await?;
    let second = open_second_path(&connection, port).await?;
    let mut stream = connection.open_uni().await?;
    stream.write_all(&data).await?;
    stream.finish()?;
    stream.stopped().await?;
    Ok([PathId::ZERO, second].map(|path| connection.path_stats(path).map_or(0, |stats| stats.cwnd)))
}

/// What the server receives of `data`, and the client's windows then.
async fn transfer(algorithm: &str, data: Vec<u8>) -> Result<(Vec<u8>, [u64; 2])> {
    let factory = Factory::new(algorithm, &Params::new())?;
    let any = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0));
    let (server, client) = (Endpoint::server(server_config(factory.another())?, any)?, Endpoint::client(any)?);
    let (port, length) = (server.local_addr()?.port(), data.len());
    let sending = tokio::spawn(send(client, client_config(factory.another())?, port, data));
    let incoming = server.accept().await.ok_or("the endpoint is closed")?;
    let connection = incoming.accept_with(Arc::new(server_config(factory.another())?))?.await?;
    let received = connection.accept_uni().await?.read_to_end(length).await?;
    Ok((received, sending.await??))
}

fn run(algorithm: &str, data: Vec<u8>) -> Result<(Vec<u8>, [u64; 2])> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(transfer(algorithm, data))
}

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [algorithm, file] = &arguments[..] else { return Err("arguments: ALGORITHM FILE".into()) };
    let (received, windows) = run(algorithm, std::fs::read(file)?)?;
    println!("{algorithm}: {} bytes received; the windows are {windows:?} bytes", received.len());
    Ok(())
}

#[test]
fn a_file_arrives_over_two_paths_as_it_was_sent() {
    let data: Vec<u8> = (0..3_000_000_u32).map(|index| (index.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    for algorithm in ["lia", "olia", "bbr3"] {
        let (received, windows) = run(algorithm, data.clone()).expect("it arrives");
        assert!(received == data && windows.iter().all(|window| *window > 0), "{algorithm}: {windows:?}");
    }
}
