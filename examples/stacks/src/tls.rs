//! TLS 1.3 of rustls. The certificate's key is Ed25519, so that signatures always have the same size.

use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use std::sync::Arc;

/// A certificate for `localhost` that is valid until 2119, with the key of the example in RFC 8410, section 10.3.
const CERTIFICATE: &[u8] = include_bytes!("../../../cc/noq/examples/tls/certificate.der");
const KEY: &[u8] = include_bytes!("../../../cc/noq/examples/tls/key.der");

pub(crate) fn refused(error: impl std::fmt::Display) -> String {
    format!("TLS 1.3 is not available: {error}")
}

fn provider() -> Arc<rustls::crypto::CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

pub(crate) fn client() -> Result<ClientConfig, String> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from(CERTIFICATE)).map_err(refused)?;
    let builder = ClientConfig::builder_with_provider(provider());
    let builder = builder.with_protocol_versions(&[&rustls::version::TLS13]).map_err(refused)?;
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}

pub(crate) fn server() -> Result<ServerConfig, String> {
    let builder = ServerConfig::builder_with_provider(provider());
    let builder = builder.with_protocol_versions(&[&rustls::version::TLS13]).map_err(refused)?;
    let (certificates, key) = (vec![CertificateDer::from(CERTIFICATE)], PrivatePkcs8KeyDer::from(KEY));
    builder.with_no_client_auth().with_single_cert(certificates, key.into()).map_err(refused)
}
