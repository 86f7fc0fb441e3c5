//! The names of all keys, as the reader itself knows them: the reference in `docs/` is tested against this.

use super::file::{File, Interface, Mpt, Path, Peer, Tunnel};
use serde::de::DeserializeOwned;

/// (table, its keys), the file itself first, with an empty name.
#[must_use]
pub fn keys() -> Vec<(&'static str, Vec<String>)> {
    vec![
        ("", of::<File>()),
        ("interface", of::<Interface>()),
        ("peer", of::<Peer>()),
        ("path", of::<Path>()),
        ("tunnel", of::<Tunnel>()),
        ("mpt", of::<Mpt>()),
    ]
}

/// What a table's reader says that it expects.
fn of<T: DeserializeOwned>() -> Vec<String> {
    let message = toml::from_str::<T>("-no-such-key = 1").err().map(|error| error.message().to_owned());
    message.unwrap_or_default().split('`').skip(3).step_by(2).map(str::to_owned).collect()
}
