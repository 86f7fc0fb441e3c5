//! The file as TOML has it: the form of each table, before anything is looked at closely.
//!
//! Values stay texts here, so that one wrong address does not hide the next one.

use parse::At;
use serde::de::value::SeqAccessDeserializer;
use serde::de::{Deserialize, Deserializer, Error, SeqAccess, Visitor};
use std::collections::BTreeMap;
use std::fmt;

/// The whole file.
#[derive(Clone, Debug, Default, serde::Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct File {
    pub(super) interface: Option<At<Interface>>,
    pub(super) peer: Option<Vec<At<Peer>>>,
    pub(super) path: Option<Vec<At<Path>>>,
    pub(super) tunnel: Option<Tunnel>,
    pub(super) mpt: Option<At<Mpt>>,
}

#[derive(Clone, Debug, Default, serde::Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Interface {
    pub(super) name: Option<At<String>>,
    pub(super) mode: Option<At<String>>,
    pub(super) address: Option<At<Many>>,
    pub(super) private_key: Option<At<String>>,
    pub(super) private_key_file: Option<At<String>>,
    pub(super) mtu: Option<At<i64>>,
    pub(super) listen_port: Option<At<i64>>,
    pub(super) routes: Option<At<bool>>,
    pub(super) user: Option<At<String>>,
    pub(super) metrics: Option<At<String>>,
}

#[derive(Clone, Debug, Default, serde::Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Peer {
    pub(super) public_key: Option<At<String>>,
    pub(super) preshared_key: Option<At<String>>,
    pub(super) preshared_key_file: Option<At<String>>,
    pub(super) allowed_ips: Option<At<Many>>,
    pub(super) endpoint: Option<At<String>>,
    pub(super) address: Option<At<String>>,
}

#[derive(Clone, Debug, Default, serde::Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Path {
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

#[derive(Clone, Debug, Default, serde::Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Tunnel {
    pub(super) congestion: Option<At<Named>>,
    pub(super) scheduler: Option<At<Named>>,
    pub(super) repair: Option<At<bool>>,
    pub(super) order: Option<At<bool>>,
    pub(super) late: Option<At<String>>,
    pub(super) max_hold: Option<At<String>>,
}

#[derive(Clone, Debug, Default, serde::Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Mpt {
    pub(super) reorder_window: Option<At<i64>>,
    pub(super) offload: Option<At<bool>>,
    pub(super) keepalive: Option<At<String>>,
    pub(super) dead: Option<At<String>>,
}

/// One text, or a list of them.
#[derive(Clone, Debug)]
pub(super) enum Many {
    One(String),
    Several(Vec<At<String>>),
}

impl<'de> Deserialize<'de> for Many {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(OneOrSeveral)
    }
}

/// Not serde's untagged enum, which would forget the places of the texts.
struct OneOrSeveral;

impl<'de> Visitor<'de> for OneOrSeveral {
    type Value = Many;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text or a list of texts")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Many, E> {
        Ok(Many::One(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, items: A) -> Result<Many, A::Error> {
        Vec::deserialize(SeqAccessDeserializer::new(items)).map(Many::Several)
    }
}

/// An entry of a registry: its name, or a table with `name` and parameters.
#[derive(Clone, Debug, serde::Deserialize)]
#[serde(untagged, expecting = "expected a name, or a table with `name` and parameters")]
pub(super) enum Named {
    Plain(String),
    Table {
        name: String,
        #[serde(flatten)]
        parameters: BTreeMap<String, Scalar>,
    },
}

/// A parameter's value.
#[derive(Clone, Debug, serde::Deserialize)]
#[serde(untagged)]
pub(super) enum Scalar {
    Truth(bool),
    Number(f64),
    Word(String),
}
