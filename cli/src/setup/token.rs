//! A token: all that a client needs to join a server, as one word.
//!
//! `rw1-` and base64url (RFC 4648, section 5) of: the end of its validity (Unix time, 4 bytes), the port (2), the
//! one-time private key, the preshared key and the server's public key (32 each), the inner addresses, the endpoints, the
//! resolvers, the name and, if there are any, the networks behind the client, each list after its count, and the CRC-32 of
//! all that (4). Numbers are big-endian. A token is a secret, and works once.

use base64ct::{Base64, Base64UrlUnpadded, Encoding};
use ipnet::IpNet;
use seal::{PresharedKey, PrivateKey, PublicKey};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use zeroize::Zeroizing;

/// The prefix of a token, with the version of its format.
const PREFIX: &str = "rw1-";
/// The maximum length of a token, characters.
const MAX_LEN: usize = 4096;
/// The maximum number of entries in a list.
const MAX_ENTRIES: usize = 16;

/// The contents of a token.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Token {
    /// The end of its validity, Unix time in seconds.
    pub(super) expires: u32,
    /// The server's UDP port.
    pub(super) port: u16,
    /// The one-time key of the client.
    pub(super) private_key: PrivateKey,
    /// The secret shared in addition to the keys.
    pub(super) preshared_key: PresharedKey,
    /// The server's public key.
    pub(super) server_key: PublicKey,
    /// The client's inner addresses with their networks; the server has the first address of each network.
    pub(super) addresses: Vec<IpNet>,
    /// Addresses or names of the server.
    pub(super) endpoints: Vec<String>,
    /// Resolvers that the client may use through the tunnel.
    pub(super) dns: Vec<IpAddr>,
    /// The client's name.
    pub(super) name: String,
    /// The networks behind the client, as they were named at the server.
    pub(super) lans: Vec<IpNet>,
}

impl Token {
    /// The token as text, which is wiped on drop.
    pub(super) fn encode(&self) -> Zeroizing<String> {
        let mut bytes = Zeroizing::new(Vec::with_capacity(MAX_LEN));
        bytes.extend_from_slice(&self.expires.to_be_bytes());
        bytes.extend_from_slice(&self.port.to_be_bytes());
        for key in [self.private_key.to_text(), self.preshared_key.to_text()] {
            bytes.extend_from_slice(&Zeroizing::new(Base64::decode_vec(&key).unwrap_or_default()));
        }
        bytes.extend_from_slice(self.server_key.bytes());
        bytes.push(self.addresses.len() as u8);
        self.addresses.iter().for_each(|address| put_network(&mut bytes, *address));
        bytes.push(self.endpoints.len() as u8);
        self.endpoints.iter().for_each(|endpoint| put_text(&mut bytes, endpoint));
        bytes.push(self.dns.len() as u8);
        self.dns.iter().for_each(|address| put_address(&mut bytes, *address));
        put_text(&mut bytes, &self.name);
        // An earlier version reads a token without them.
        if !self.lans.is_empty() {
            bytes.push(self.lans.len() as u8);
            self.lans.iter().for_each(|network| put_network(&mut bytes, *network));
        }
        let checksum = crc32fast::hash(&bytes);
        bytes.extend_from_slice(&checksum.to_be_bytes());
        let mut text = Zeroizing::new(String::with_capacity(MAX_LEN * 2));
        text.push_str(PREFIX);
        text.push_str(&Zeroizing::new(Base64UrlUnpadded::encode_string(&bytes)));
        text
    }

    /// Reads a token.
    ///
    /// # Errors
    /// The fault, in words that repeat none of the token.
    pub(super) fn decode(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let Some(body) = text.strip_prefix(PREFIX) else {
            return Err(format!(
                "this is not a token: `ropewalk setup server` prints one, which begins with `{PREFIX}`"
            ));
        };
        if text.len() > MAX_LEN {
            return Err(format!("this is not a token: it is longer than {MAX_LEN} characters"));
        }
        let damaged = || "the token is damaged or incomplete: copy the whole line that the server printed".to_owned();
        let bytes = Zeroizing::new(Base64UrlUnpadded::decode_vec(body).map_err(|_| damaged())?);
        let (content, checksum) = bytes.split_last_chunk::<4>().ok_or_else(damaged)?;
        if crc32fast::hash(content).to_be_bytes() != *checksum {
            return Err(damaged());
        }
        Reader(content).token().ok_or_else(damaged)
    }

    /// The server's inner addresses: the first of each network.
    pub(super) fn server_addresses(&self) -> Vec<IpAddr> {
        self.addresses.iter().filter_map(|address| server_address(*address)).collect()
    }
}

/// The address of the server in a network: the first one.
pub(super) fn server_address(network: IpNet) -> Option<IpAddr> {
    nth_address(network, 1)
}

/// The address number `index` of a network.
pub(super) fn nth_address(network: IpNet, index: u32) -> Option<IpAddr> {
    let address = match network.network() {
        IpAddr::V4(first) => IpAddr::V4(Ipv4Addr::from(u32::from(first).checked_add(index)?)),
        IpAddr::V6(first) => IpAddr::V6(Ipv6Addr::from(u128::from(first).checked_add(u128::from(index))?)),
    };
    (network.contains(&address) && IpNet::from(address) != IpNet::from(network.broadcast())).then_some(address)
}

fn put_address(bytes: &mut Vec<u8>, address: IpAddr) {
    match address {
        IpAddr::V4(address) => {
            bytes.push(4);
            bytes.extend_from_slice(&address.octets());
        }
        IpAddr::V6(address) => {
            bytes.push(6);
            bytes.extend_from_slice(&address.octets());
        }
    }
}

fn put_network(bytes: &mut Vec<u8>, network: IpNet) {
    put_address(bytes, network.addr());
    bytes.push(network.prefix_len());
}

fn put_text(bytes: &mut Vec<u8>, text: &str) {
    bytes.push(text.len() as u8);
    bytes.extend_from_slice(text.as_bytes());
}

/// What is left to read.
struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn token(mut self) -> Option<Token> {
        let token = Token {
            expires: u32::from_be_bytes(self.array()?),
            port: u16::from_be_bytes(self.array()?),
            private_key: PrivateKey::from_bytes(self.array()?),
            preshared_key: PresharedKey::from_bytes(self.array()?),
            server_key: PublicKey::from_bytes(self.array()?),
            addresses: self.list(Self::network)?,
            endpoints: self.list(Self::text)?,
            dns: self.list(Self::address)?,
            name: self.text()?,
            lans: if self.0.is_empty() { Vec::new() } else { self.list(Self::network)? },
        };
        let is_endpoint = |text: &String| daemon::config::PeerEndpoint::parse(text).is_ok();
        let is_whole = self.0.is_empty() && token.port != 0 && !token.addresses.is_empty();
        let is_usable = !token.endpoints.is_empty() && token.endpoints.iter().all(is_endpoint);
        (is_whole && is_usable && daemon::config::is_peer_name(&token.name)).then_some(token)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (array, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*array)
    }

    fn address(&mut self) -> Option<IpAddr> {
        match self.array::<1>()?[0] {
            4 => self.array::<4>().map(IpAddr::from),
            6 => self.array::<16>().map(IpAddr::from),
            _ => None,
        }
    }

    fn network(&mut self) -> Option<IpNet> {
        let address = self.address()?;
        IpNet::new(address, self.array::<1>()?[0]).ok()
    }

    fn text(&mut self) -> Option<String> {
        let len = usize::from(self.array::<1>()?[0]);
        let (text, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        String::from_utf8(text.to_vec()).ok()
    }

    fn list<T>(&mut self, mut read: impl FnMut(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let count = usize::from(self.array::<1>()?[0]);
        if count > MAX_ENTRIES {
            return None;
        }
        (0..count).map(|_| read(self)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token() -> Token {
        Token {
            expires: 1_795_400_000,
            port: 4754,
            private_key: PrivateKey::from_bytes([1; 32]),
            preshared_key: PresharedKey::from_bytes([2; 32]),
            server_key: PublicKey::from_bytes([3; 32]),
            addresses: vec!["10.77.0.2/24".parse().unwrap(), "fd77::2/64".parse().unwrap()],
            endpoints: vec!["203.0.113.1".into(), "2001:db8::1".into(), "vpn.example.org".into()],
            dns: vec!["9.9.9.9".parse().unwrap(), "2620:fe::fe".parse().unwrap()],
            name: "laptop".into(),
            lans: vec!["192.168.50.0/24".parse().unwrap()],
        }
    }

    #[test]
    fn a_token_is_read_as_it_was_written() {
        let text = token().encode();
        assert_eq!(Token::decode(&text), Ok(token()));
        assert_eq!(Token::decode(&format!(" {}\n", *text)), Ok(token()));
        let servers: Vec<_> = token().server_addresses().iter().map(ToString::to_string).collect();
        assert_eq!(servers, ["10.77.0.1", "fd77::1"]);
    }

    #[test]
    fn a_token_with_a_wrong_missing_or_added_character_is_refused() {
        let text = token().encode();
        for end in 0..text.len() {
            assert!(Token::decode(&text[..end]).is_err(), "{end}");
        }
        for index in PREFIX.len()..text.len() {
            let mut changed = text.as_bytes().to_vec();
            changed[index] = if changed[index] == b'A' { b'B' } else { b'A' };
            assert!(Token::decode(&String::from_utf8(changed).unwrap()).is_err(), "{index}");
        }
        assert!(Token::decode(&format!("{}A", *text)).is_err());
        assert!(Token::decode(&format!("rw1-{}", "A".repeat(10_000))).unwrap_err().contains("longer"));
    }

    #[test]
    fn no_content_with_a_right_checksum_is_read_past_its_end() {
        let bytes = Base64UrlUnpadded::decode_vec(&token().encode()[PREFIX.len()..]).unwrap();
        let content = &bytes[..bytes.len() - 4];
        // Without its last list it is a token of an earlier version.
        let earlier = content.len() - 7;
        for end in 0..content.len() {
            let read = Reader(&content[..end]).token();
            assert_eq!(read.is_some(), end == earlier, "{end}");
        }
        assert_eq!(Reader(&content[..earlier]).token().unwrap().lans, []);
        for (index, value) in (0..content.len()).flat_map(|index| [0, 1, 17, 255].map(|value| (index, value))) {
            let mut changed = content.to_vec();
            changed[index] = value;
            // For any contents: no panic, and only usable names.
            let read = Reader(&changed).token();
            assert!(read.is_none_or(|token| daemon::config::is_peer_name(&token.name)));
        }
    }

    #[test]
    fn addresses_of_a_network_are_neither_its_first_nor_its_broadcast() {
        let network = "10.77.0.0/30".parse().unwrap();
        let addresses: Vec<_> = (1..5).map_while(|index| nth_address(network, index)).collect();
        assert_eq!(addresses, [IpAddr::from([10, 77, 0, 1]), IpAddr::from([10, 77, 0, 2])]);
    }
}
