//! The tables of the configuration file and their keys. Values are kept as strings, so that one wrong address
//! does not hide the next. `docs/reference/tunnel-configuration.md` describes every key; a test compares.

use parse::Spanned;
use serde::de::value::SeqAccessDeserializer;
use serde::de::{Deserialize, Deserializer, Error, SeqAccess, Visitor};
use std::collections::BTreeMap;
use std::fmt;
use zeroize::Zeroizing;

/// The whole file.
#[derive(Clone, Debug, Default, serde::Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct ConfigFile {
    pub(super) interface: Option<Spanned<InterfaceTable>>,
    pub(super) peer: Option<Vec<Spanned<PeerTable>>>,
    pub(super) path: Option<Vec<Spanned<PathTable>>>,
    pub(super) tunnel: Option<TunnelTable>,
    pub(super) mpt: Option<Spanned<MptTable>>,
    pub(super) notify: Option<Spanned<NotifyTable>>,
    pub(super) class: Option<ClassTables>,
}

/// The classes of traffic.
#[derive(Clone, Debug, Default, serde::Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct ClassTables {
    pub(super) realtime: Option<Spanned<RealtimeTable>>,
}

/// `[class.realtime]`.
#[derive(Clone, Debug, Default, serde::Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct RealtimeTable {
    pub(super) dscp: Option<Spanned<StringOrList>>,
    pub(super) ports: Option<Spanned<StringOrList>>,
    pub(super) copy_budget: Option<Spanned<String>>,
    pub(super) copy_on_metered: Option<Spanned<bool>>,
    pub(super) share: Option<Spanned<String>>,
}

/// The file that `peers-file` names.
#[derive(Clone, Debug, Default, serde::Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct PeersTables {
    pub(super) peer: Option<Vec<Spanned<PeerTable>>>,
}

/// `[interface]`.
#[derive(Clone, Debug, Default, serde::Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct InterfaceTable {
    pub(super) name: Option<Spanned<String>>,
    pub(super) mode: Option<Spanned<String>>,
    pub(super) address: Option<Spanned<StringOrList>>,
    pub(super) private_key: Option<Spanned<Zeroizing<String>>>,
    pub(super) private_key_file: Option<Spanned<String>>,
    pub(super) mtu: Option<Spanned<i64>>,
    pub(super) listen_port: Option<Spanned<i64>>,
    pub(super) routes: Option<Spanned<bool>>,
    pub(super) user: Option<Spanned<String>>,
    pub(super) peers_file: Option<Spanned<String>>,
    pub(super) metrics: Option<Spanned<String>>,
    pub(super) history: Option<Spanned<String>>,
    pub(super) speed_test: Option<Spanned<bool>>,
    pub(super) dashboard: Option<Spanned<String>>,
    pub(super) dashboard_token_file: Option<Spanned<String>>,
    pub(super) threads: Option<Spanned<NumberOrWord>>,
    pub(super) allow_readable_keys: Option<Spanned<bool>>,
    pub(super) uplinks: Option<Spanned<UplinksValue>>,
    pub(super) routing: Option<Spanned<String>>,
    pub(super) exclusive: Option<Spanned<bool>>,
}

/// `uplinks`: `"auto"` or a table.
#[derive(Clone, Debug, serde::Deserialize)]
#[serde(
    untagged,
    expecting = "expected \"auto\", or a table with `exclude`, `metered`, `unmetered`, `secondary`, `quota` and `quota-reset-day`"
)]
pub(super) enum UplinksValue {
    Word(String),
    Table(UplinksTable),
}

/// The table of `uplinks`: patterns of device names.
#[derive(Clone, Debug, Default, serde::Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct UplinksTable {
    #[serde(default)]
    pub(super) exclude: Vec<String>,
    #[serde(default)]
    pub(super) metered: Vec<String>,
    #[serde(default)]
    pub(super) unmetered: Vec<String>,
    #[serde(default)]
    pub(super) secondary: Vec<String>,
    /// Quotas by pattern.
    #[serde(default)]
    pub(super) quota: BTreeMap<String, String>,
    pub(super) quota_reset_day: Option<i64>,
}

/// `[[peer]]`.
#[derive(Clone, Debug, Default, serde::Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct PeerTable {
    pub(super) name: Option<Spanned<String>>,
    pub(super) public_key: Option<Spanned<String>>,
    pub(super) preshared_key: Option<Spanned<Zeroizing<String>>>,
    pub(super) preshared_key_file: Option<Spanned<String>>,
    pub(super) allowed_ips: Option<Spanned<StringOrList>>,
    pub(super) endpoint: Option<Spanned<StringOrList>>,
    pub(super) address: Option<Spanned<String>>,
    pub(super) token_expires: Option<Spanned<i64>>,
    pub(super) expires: Option<Spanned<i64>>,
    pub(super) priority: Option<Spanned<i64>>,
}

/// `[[path]]`.
#[derive(Clone, Debug, Default, serde::Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct PathTable {
    pub(super) name: Option<Spanned<String>>,
    pub(super) interface: Option<Spanned<String>>,
    pub(super) source: Option<Spanned<String>>,
    pub(super) listen_port: Option<Spanned<i64>>,
    pub(super) endpoint: Option<Spanned<StringOrList>>,
    pub(super) backup: Option<Spanned<bool>>,
    pub(super) metered: Option<Spanned<bool>>,
    pub(super) secondary: Option<Spanned<bool>>,
    pub(super) classes: Option<Spanned<StringOrList>>,
    pub(super) quota: Option<Spanned<String>>,
    pub(super) quota_reset_day: Option<Spanned<i64>>,
    pub(super) weight: Option<Spanned<i64>>,
    pub(super) rate: Option<Spanned<String>>,
}

/// `[tunnel]`.
#[derive(Clone, Debug, Default, serde::Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct TunnelTable {
    pub(super) congestion: Option<Spanned<NameOrTable>>,
    pub(super) scheduler: Option<Spanned<NameOrTable>>,
    pub(super) retransmit: Option<Spanned<bool>>,
    pub(super) ack_filter: Option<Spanned<bool>>,
    pub(super) in_order: Option<Spanned<bool>>,
    pub(super) late: Option<Spanned<String>>,
    pub(super) max_reorder_timeout: Option<Spanned<String>>,
    pub(super) relay: Option<Spanned<String>>,
    pub(super) relay_connections: Option<Spanned<i64>>,
    pub(super) relay_exclude: Option<Spanned<StringOrList>>,
    pub(super) relay_networks: Option<Spanned<StringOrList>>,
}

/// `[mpt]`.
#[derive(Clone, Debug, Default, serde::Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct MptTable {
    pub(super) reorder_window: Option<Spanned<i64>>,
    pub(super) offload: Option<Spanned<bool>>,
    pub(super) keepalive_time: Option<Spanned<String>>,
    pub(super) dead_time: Option<Spanned<String>>,
}

/// A whole number, or a word.
#[derive(Clone, Debug, serde::Deserialize)]
#[serde(untagged, expecting = "expected a number or a word")]
pub(super) enum NumberOrWord {
    Number(i64),
    Word(String),
}

/// `[notify]`.
#[derive(Clone, Debug, Default, serde::Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct NotifyTable {
    pub(super) hook: Option<Spanned<String>>,
    pub(super) webhook: Option<Spanned<String>>,
    pub(super) events: Option<Spanned<StringOrList>>,
}

/// A string, or a list of strings.
#[derive(Clone, Debug)]
pub(super) enum StringOrList {
    String(String),
    List(Vec<Spanned<String>>),
}

impl<'de> Deserialize<'de> for StringOrList {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(StringOrListVisitor)
    }
}

/// The visitor of [`StringOrList`]. Unlike serde's untagged enum, it keeps the span of each string.
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
#[serde(untagged, expecting = "expected true, false, a number or a word")]
pub(super) enum Scalar {
    Boolean(bool),
    Number(f64),
    Word(String),
}
