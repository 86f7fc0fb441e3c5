//! The endpoint of a peer: an address or a host name, and a port.

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};

/// The port of GRE-in-UDP (RFC 8086).
pub const DEFAULT_PORT: u16 = 4754;

/// The endpoint of a peer.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PeerEndpoint {
    /// An address or a host name.
    pub host: String,
    /// A UDP port.
    pub port: u16,
}

impl PeerEndpoint {
    /// Parses `host:port`, `192.0.2.1:4754`, `[2001:db8::1]:4754`, or any of them without the port.
    ///
    /// # Errors
    /// The text is not an endpoint; the error says why.
    pub fn parse(text: &str) -> Result<Self, String> {
        if let Ok(address) = text.parse::<SocketAddr>() {
            return Self::new(address.ip().to_string(), address.port());
        }
        if let Ok(address) = text.trim_matches(['[', ']']).parse::<IpAddr>() {
            return Self::new(address.to_string(), DEFAULT_PORT);
        }
        let (host, port) = text.rsplit_once(':').map_or((text, None), |(host, port)| (host, Some(port)));
        let is_allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_');
        if host.is_empty() || !host.chars().all(is_allowed) {
            return Err(format!("`{text}` is not an endpoint"));
        }
        match port.map_or(Ok(DEFAULT_PORT), str::parse) {
            Ok(port) => Self::new(host.to_owned(), port),
            Err(_) => Err(format!("`{}` is not a port", port.unwrap_or_default())),
        }
    }

    fn new(host: String, port: u16) -> Result<Self, String> {
        if port == 0 { Err("port 0 is not a destination port".to_owned()) } else { Ok(Self { host, port }) }
    }

    /// The address; `None` for a host name.
    #[must_use]
    pub fn address(&self) -> Option<SocketAddr> {
        self.host.parse().ok().map(|ip| SocketAddr::new(ip, self.port))
    }

    /// Looks up the addresses of the family of `source` (any family without one), in the resolver's order.
    ///
    /// # Errors
    /// The resolver's, or there is no address of this family.
    pub fn resolve(&self, source: Option<IpAddr>) -> io::Result<Vec<SocketAddr>> {
        let has_family = |address: &SocketAddr| source.is_none_or(|source| source.is_ipv4() == address.is_ipv4());
        let addresses: Vec<_> = (self.host.as_str(), self.port).to_socket_addrs()?.filter(has_family).collect();
        if addresses.is_empty() {
            let message = format!("{} has no address of the family of the path's source", self.host);
            return Err(io::Error::new(io::ErrorKind::AddrNotAvailable, message));
        }
        Ok(addresses)
    }
}

impl fmt::Display for PeerEndpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.address() {
            Some(address) => write!(f, "{address}"),
            None => write!(f, "{}:{}", self.host, self.port),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoints_are_read_in_every_form_and_shown_in_one() {
        for (text, expected) in [
            ("vpn.example.org:4755", "vpn.example.org:4755"),
            ("vpn.example.org", "vpn.example.org:4754"),
            ("192.0.2.1", "192.0.2.1:4754"),
            ("192.0.2.1:99", "192.0.2.1:99"),
            ("2001:db8::1", "[2001:db8::1]:4754"),
            ("[2001:db8::1]:99", "[2001:db8::1]:99"),
        ] {
            assert_eq!(
                PeerEndpoint::parse(text).map(|endpoint| endpoint.to_string()),
                Ok(expected.to_owned()),
                "{text}"
            );
        }
        for text in ["", ":4754", "a b:1", "host:port", "host:70000", "host:0", "192.0.2.1:0"] {
            assert!(PeerEndpoint::parse(text).is_err(), "{text}");
        }
    }
}
