//! The configuration file as TOML has it: the form of each table. Values stay texts here, so that one wrong address does not
//! hide the next. `docs/tunnel-configuration.md` describes every key; a test compares.

use parse::At;
use serde::de::value::SeqAccessDeserializer;
use serde::de::{Deserialize, Deserializer, Error, SeqAccess, Visitor};
use std::collections::BTreeMap;
use std::fmt;

/// The whole file.
#[derive(Clone, Debug, Default, serde::Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct ConfigFile {
    pub(super) interface: Option<At<InterfaceTable>>,
    pub(super) peer: Option<Vec<At<PeerTable>>>,
    pub(super) path: Option<Vec<At<PathTable>>>,
    pub(super) tunnel: Option<TunnelTable>,
    pub(super) mpt: Option<At<MptTable>>,
}

/// `[interface]`.
#[derive(Clone, Debug, Default, serde::Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct InterfaceTable {
    pub(super) name: Option<At<String>>,
    pub(super) mode: Option<At<String>>,
    pub(super) address: Option<At<StringOrList>>,
    pub(super) private_key: Option<At<String>>,
    pub(super) private_key_file: Option<At<String>>,
    pub(super) mtu: Option<At<i64>>,
    pub(super) listen_port: Option<At<i64>>,
    pub(super) routes: Option<At<bool>>,
    pub(super) user: Option<At<String>>,
    pub(super) metrics: Option<At<String>>,
}

/// `[[peer]]`.
#[derive(Clone, Debug, Default, serde::Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct PeerTable {
    pub(super) public_key: Option<At<String>>,
    pub(super) preshared_key: Option<At<String>>,
    pub(super) preshared_key_file: Option<At<String>>,
    pub(super) allowed_ips: Option<At<StringOrList>>,
    pub(super) endpoint: Option<At<String>>,
    pub(super) address: Option<At<String>>,
}

/// `[[path]]`.
#[derive(Clone, Debug, Default, serde::Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct PathTable {
    pub(super) name: Option<At<String>>,
    pub(super) interface: Option<At<String>>,
    pub(super) source: Option<At<String>>,
    pub(super) listen_port: Option<At<i64>>,
    pub(super) endpoint: Option<At<String>>,
    pub(super) backup: Option<At<bool>>,
    pub(super) metered: Option<At<bool>>,
    pub(super) weight: Option<At<i64>>,
    pub(super) rate: Option<At<String>>,
}

/// `[tunnel]`.
#[derive(Clone, Debug, Default, serde::Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct TunnelTable {
    pub(super) congestion: Option<At<NameOrTable>>,
    pub(super) scheduler: Option<At<NameOrTable>>,
    pub(super) retransmit: Option<At<bool>>,
    pub(super) in_order: Option<At<bool>>,
    pub(super) late: Option<At<String>>,
    pub(super) max_reorder_timeout: Option<At<String>>,
}

/// `[mpt]`.
#[derive(Clone, Debug, Default, serde::Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct MptTable {
    pub(super) reorder_window: Option<At<i64>>,
    pub(super) offload: Option<At<bool>>,
    pub(super) keepalive_time: Option<At<String>>,
    pub(super) dead_time: Option<At<String>>,
}

/// A string, or a list of strings.
#[derive(Clone, Debug)]
pub(super) enum StringOrList {
    String(String),
    List(Vec<At<String>>),
}

impl<'de> Deserialize<'de> for StringOrList {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(StringOrListVisitor)
    }
}

/// Unlike serde's untagged enum, it keeps the place of each string.
struct StringOrListVisitor;

impl<'de> Visitor<'de> for StringOrListVisitor {
    type Value = StringOrList;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string or a list of strings")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<StringOrList, E> {
        Ok(StringOrList::String(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, items: A) -> Result<StringOrList, A::Error> {
        Vec::deserialize(SeqAccessDeserializer::new(items)).map(StringOrList::List)
    }
}

/// An algorithm of a registry: its name, or a table with `name` and parameters.
#[derive(Clone, Debug, serde::Deserialize)]
#[serde(untagged, expecting = "expected a name, or a table with `name` and parameters")]
pub(super) enum NameOrTable {
    Name(String),
    Table {
        name: String,
        #[serde(flatten)]
        parameters: BTreeMap<String, Scalar>,
    },
}

/// The value of a parameter.
#[derive(Clone, Debug, serde::Deserialize)]
#[serde(untagged)]
pub(super) enum Scalar {
    Boolean(bool),
    Number(f64),
    Word(String),
}
