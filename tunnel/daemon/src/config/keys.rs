//! The names of all keys, from serde. `docs/reference/tunnel-configuration.md` is tested against them.

use super::tables::{
    ConfigFile, InterfaceTable, MptTable, NotifyTable, PathTable, PeerTable, RealtimeTable, TunnelTable,
};
use serde::de::DeserializeOwned;

/// (table, its keys). The first is the file itself, with an empty name.
#[must_use]
pub fn keys() -> Vec<(&'static str, Vec<String>)> {
    vec![
        ("", table_keys::<ConfigFile>()),
        ("interface", table_keys::<InterfaceTable>()),
        ("peer", table_keys::<PeerTable>()),
        ("path", table_keys::<PathTable>()),
        ("tunnel", table_keys::<TunnelTable>()),
        ("mpt", table_keys::<MptTable>()),
        ("class.realtime", table_keys::<RealtimeTable>()),
        ("notify", table_keys::<NotifyTable>()),
    ]
}

/// The keys of a table, from serde's error on an unknown one.
fn table_keys<T: DeserializeOwned>() -> Vec<String> {
    let message = toml::from_str::<T>("-no-such-key = 1").err().map(|error| error.message().to_owned());
    message.unwrap_or_default().split('`').skip(3).step_by(2).map(str::to_owned).collect()
}
