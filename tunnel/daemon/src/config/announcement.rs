//! What a server announces to its clients, so that they follow it to another address and another key: a file next to the
//! `peers-file`, which `ropewalk setup server` writes. It holds no secret.

use super::endpoint::PeerEndpoint;
use super::secrets;
use filesystem::Folder;
use seal::PublicKey;
use serde::{Deserialize, Serialize};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

/// The longest file, and the longest announcement on the wire, bytes.
pub(crate) const MAX_LEN: u64 = 4096;
/// The most endpoints.
const MAX_ENDPOINTS: usize = 8;

/// An announcement.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Announcement {
    /// Endpoints at which the server is, or will be, reached.
    pub endpoints: Vec<String>,
    /// The key that the server will have next.
    pub next_key: Option<String>,
}

impl Announcement {
    /// The file that goes with a `peers-file`.
    #[must_use]
    pub fn file(peers_file: &Path) -> PathBuf {
        peers_file.with_extension("announcement")
    }

    /// Reads a file; without one nothing is announced.
    ///
    /// # Errors
    /// It cannot be read, or is wrong.
    pub fn read(path: &Path) -> io::Result<Self> {
        match secrets::read_untrusted(path, MAX_LEN) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Self::default()),
            read => Self::parse(&read?.text),
        }
    }

    /// Reads an announcement, of which a terminal and a configuration will have the texts.
    ///
    /// # Errors
    /// It is no announcement, or has endpoints or a key that are none.
    pub fn parse(text: &str) -> io::Result<Self> {
        let announcement: Self = serde_json::from_str(text)?;
        let is_endpoint = |text: &String| PeerEndpoint::parse(text).is_ok_and(|endpoint| endpoint.to_string() == *text);
        let is_key = announcement
            .next_key
            .as_ref()
            .is_none_or(|text| text.parse::<PublicKey>().is_ok_and(|key| key.to_string() == *text));
        let endpoints = &announcement.endpoints;
        if is_key && endpoints.len() <= MAX_ENDPOINTS && endpoints.iter().all(is_endpoint) {
            return Ok(announcement);
        }
        Err(io::Error::new(io::ErrorKind::InvalidData, "it is no announcement"))
    }

    /// The text of the file: one line.
    #[must_use]
    pub fn text(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// A number by which a client says which announcement it knows.
    #[must_use]
    pub fn checksum(&self) -> u32 {
        crc32fast::hash(self.text().as_bytes())
    }

    /// Replaces the file by a new one, which belongs to the folder's owner.
    ///
    /// # Errors
    /// The file system's; the earlier file is untouched then.
    pub fn write(&self, path: &Path) -> io::Result<()> {
        let (folder, name) = Folder::of_file(path)?;
        let mut new_name = name.clone();
        new_name.push(".new");
        folder.remove(&new_name)?;
        let mut file = folder.create_new(&new_name, 0o600)?;
        folder.give(&file, folder.owner()?)?;
        file.write_all(self.text().as_bytes())?;
        file.sync_all()?;
        folder.rename(&new_name, &name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_endpoints_and_keys_are_announced() {
        let key = crate::keys::pubkey(&crate::keys::genkey()).unwrap();
        let announcement = Announcement {
            endpoints: vec!["198.51.100.7:4754".into(), "[2001:db8::1]:4754".into(), "vpn.example.org:99".into()],
            next_key: Some(key.trim().to_owned()),
        };
        assert_eq!(Announcement::parse(&announcement.text()).unwrap(), announcement);
        assert_ne!(announcement.checksum(), Announcement::default().checksum());
        for text in [
            "",
            "{}",
            "{\"endpoints\": [\"a\\\"b\"], \"next_key\": null}",
            "{\"endpoints\": [\"192.0.2.1:1\\n[x]\"], \"next_key\": null}",
            "{\"endpoints\": [], \"next_key\": \"AAAA\"}",
            "{\"endpoints\": [], \"next_key\": null, \"more\": 1}",
            "{\"endpoints\": [\"a:1\",\"a:2\",\"a:3\",\"a:4\",\"a:5\",\"a:6\",\"a:7\",\"a:8\",\"a:9\"], \"next_key\": null}",
        ] {
            assert!(Announcement::parse(text).is_err(), "{text}");
        }
    }
}
