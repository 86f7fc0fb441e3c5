//! The names of all keys, as the deserializer knows them. `docs/tunnel-configuration.md` is tested against them.

use super::tables::{ConfigFile, InterfaceTable, MptTable, PathTable, PeerTable, TunnelTable};
use serde::de::DeserializeOwned;

/// (table, its keys). The first is the file itself, with an empty name.
#[must_use]
pub fn keys() -> Vec<(&'static str, Vec<String>)> {
    vec![
        ("", of::<ConfigFile>()),
        ("interface", of::<InterfaceTable>()),
        ("peer", of::<PeerTable>()),
        ("path", of::<PathTable>()),
        ("tunnel", of::<TunnelTable>()),
        ("mpt", of::<MptTable>()),
    ]
}

/// The keys of a table, from serde's error on an unknown one.
fn of<T: DeserializeOwned>() -> Vec<String> {
    let message = toml::from_str::<T>("-no-such-key = 1").err().map(|error| error.message().to_owned());
    message.unwrap_or_default().split('`').skip(3).step_by(2).map(str::to_owned).collect()
}
