//! The endpoint of a peer: an address or a host name, and a port; or several of them.

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};

/// The port of GRE-in-UDP (RFC 8086).
pub const DEFAULT_PORT: u16 = 4754;

/// The endpoint of a peer: one or more places at which the peer can be reached.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PeerEndpoint {
    /// In the order in which they are tried; at least one.
    places: Vec<Place>,
}

/// An address or a host name, and a UDP port.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    host: String,
    port: u16,
}

impl Place {
    /// The address; `None` for a host name.
    fn address(&self) -> Option<SocketAddr> {
        self.host.parse().ok().map(|ip| SocketAddr::new(ip, self.port))
    }
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
        if port == 0 {
            Err("port 0 is not a destination port".to_owned())
        } else {
            Ok(Self { places: vec![Place { host, port }] })
        }
    }

    /// This endpoint, followed by the places of `other`.
    #[must_use]
    pub fn or(mut self, other: Self) -> Self {
        self.places.extend(other.places.into_iter().filter(|place| !self.places.contains(place)).collect::<Vec<_>>());
        self
    }

    /// The places that are addresses and not host names.
    pub fn addresses(&self) -> impl Iterator<Item = SocketAddr> {
        self.places.iter().filter_map(Place::address)
    }

    /// Whether all places are addresses, without a host name.
    #[must_use]
    pub fn is_numeric(&self) -> bool {
        self.addresses().count() == self.places.len()
    }

    /// Looks up the addresses of the family of `source` (any family without one), in the order of the places and, for
    /// each, the resolver's.
    ///
    /// # Errors
    /// The resolver's error for the last place, or there is no address of this family.
    pub fn resolve(&self, source: Option<IpAddr>) -> io::Result<Vec<SocketAddr>> {
        let has_family = |address: &SocketAddr| source.is_none_or(|source| source.is_ipv4() == address.is_ipv4());
        let mut addresses = Vec::new();
        let mut error = None;
        for place in &self.places {
            match (place.host.as_str(), place.port).to_socket_addrs() {
                Ok(found) => addresses.extend(found.filter(has_family)),
                Err(failure) => error = Some(failure),
            }
        }
        if addresses.is_empty() {
            let message = format!("{self} has no address of the family of the path's source");
            return Err(error.unwrap_or_else(|| io::Error::new(io::ErrorKind::AddrNotAvailable, message)));
        }
        Ok(addresses)
    }
}

impl fmt::Display for PeerEndpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, place) in self.places.iter().enumerate() {
            let separator = if index == 0 { "" } else { " or " };
            match place.address() {
                Some(address) => write!(f, "{separator}{address}")?,
                None => write!(f, "{separator}{}:{}", place.host, place.port)?,
            }
        }
        Ok(())
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

    #[test]
    fn places_are_looked_up_in_their_order_and_only_those_of_the_family_of_the_source() {
        let place = |text| PeerEndpoint::parse(text).unwrap();
        let endpoint = place("[2001:db8::1]:99").or(place("no-such-host.invalid")).or(place("192.0.2.1"));
        assert_eq!(endpoint.to_string(), "[2001:db8::1]:99 or no-such-host.invalid:4754 or 192.0.2.1:4754");
        assert!(!endpoint.is_numeric() && place("192.0.2.1").or(place("192.0.2.2")).is_numeric());
        let [v6, v4] = ["[2001:db8::1]:99", "192.0.2.1:4754"].map(|text| text.parse::<SocketAddr>().unwrap());
        assert_eq!(endpoint.addresses().collect::<Vec<_>>(), [v6, v4]);
        assert_eq!(endpoint.resolve(None).unwrap(), [v6, v4], "a name without an address is passed over");
        assert_eq!(endpoint.resolve(Some([192, 0, 2, 9].into())).unwrap(), [v4]);
        assert!(place("192.0.2.1").or(place("192.0.2.2")).resolve(Some(v6.ip())).is_err());
    }
}
