//! Sends a file over loopback, in quinn with its sockets and TLS 1.3, under a congestion control of Ropewalk.
//!
//!     cargo run --package ropewalk-quinn --example send_file -- cubic FILE

use quinn::{ClientConfig, Endpoint, ServerConfig, TransportConfig};
use ropewalk_quinn::{Factory, Params};
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use std::error::Error;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

/// A certificate for `localhost` that is valid until 2119, with the Ed25519 key of the example in RFC 8410, section 10.3.
/// Everybody knows it.
const CERTIFICATE: &[u8] = include_bytes!("tls/certificate.der");
const KEY: &[u8] = include_bytes!("tls/key.der");
const NAME: &str = "localhost";

/// A server and a client on loopback. Both send under `algorithm`.
fn endpoints(algorithm: &str) -> Result<(Endpoint, Endpoint)> {
    let mut transport = TransportConfig::default();
    transport.congestion_controller_factory(Arc::new(Factory::new(algorithm, &Params::new())?));
    let transport = Arc::new(transport);
    let (certificate, key) = (CertificateDer::from(CERTIFICATE), PrivatePkcs8KeyDer::from(KEY));
    let mut server = ServerConfig::with_single_cert(vec![certificate.clone()], key.into())?;
    server.transport_config(Arc::clone(&transport));
    let mut roots = rustls::RootCertStore::empty();
    roots.add(certificate)?;
    let mut client = ClientConfig::with_root_certificates(Arc::new(roots))?;
    client.transport_config(transport);
    let loopback = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let mut client_endpoint = Endpoint::client(loopback)?;
    client_endpoint.set_default_client_config(client);
    Ok((Endpoint::server(server, loopback)?, client_endpoint))
}

/// What the server receives of `data`, and the client's window then, bytes.
async fn transfer(algorithm: &str, data: Vec<u8>) -> Result<(Vec<u8>, u64)> {
    let (server, client) = endpoints(algorithm)?;
    let address = server.local_addr()?;
    let length = data.len();
    let sending = tokio::spawn(async move {
        let connection = client.connect(address, NAME)?.await?;
        let mut stream = connection.open_uni().await?;
        stream.write_all(&data).await?;
        stream.finish()?;
        stream.stopped().await?;
        Result::Ok(connection.stats().path.cwnd)
    });
    let connection = server.accept().await.ok_or("the endpoint is closed")?.await?;
    let received = connection.accept_uni().await?.read_to_end(length).await?;
    Ok((received, sending.await??))
}

fn run(algorithm: &str, data: Vec<u8>) -> Result<(Vec<u8>, u64)> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(transfer(algorithm, data))
}

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [algorithm, file] = &arguments[..] else { return Err("arguments: ALGORITHM FILE".into()) };
    let (received, cwnd) = run(algorithm, std::fs::read(file)?)?;
    println!("{algorithm}: {} bytes received; the window is {cwnd} bytes", received.len());
    Ok(())
}

#[test]
fn a_file_arrives_as_it_was_sent() {
    let data: Vec<u8> = (0..3_000_000_u32).map(|index| (index.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    for algorithm in ["cubic", "vegas", "lia"] {
        let (received, cwnd) = run(algorithm, data.clone()).expect("it arrives");
        assert!(received == data && cwnd > 0, "{algorithm}");
    }
}
