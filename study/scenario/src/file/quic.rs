//! The table of a multipath QUIC flow.

use parse::Spanned;
use schemars::JsonSchema;
use serde::Deserialize;

/// The other settings of a multipath QUIC connection.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "quic")]
pub(crate) struct Quic {
    /// Streams, over which the data is spread evenly: what is missing of one does not hold up the others.
    pub(crate) streams: Option<Spanned<u32>>,
    /// One weight a path, for schedulers that have weights. Default: their rates (weighted), or all 1.
    pub(crate) weights: Option<Spanned<Vec<u32>>>,
}
