//! A flow of requests: as the file has it, and as the model.

use crate::drawn::Drawn;
use crate::model::{self, Draw};
use crate::resolve::positive;
use parse::At;
use parse::Fault;
use parse::{Size, Time};
use schemars::JsonSchema;
use serde::Deserialize;

/// Requests and answers, one after the other.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "requests")]
pub(crate) struct Requests {
    /// Size of an answer.
    size: At<Drawn<Size>>,
    /// Time between an answer and the next request. Default: "0s".
    think: Option<At<Drawn<Time>>>,
    /// Default: persistent.
    #[serde(default)]
    connection: Connection,
}

/// On which connection a request goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "connection")]
enum Connection {
    /// All on one.
    #[default]
    Persistent,
    /// Each on a new one.
    New,
}

impl Requests {
    /// For the model.
    pub(crate) fn resolve(&self) -> Result<model::Requests, Fault> {
        Ok(model::Requests {
            size: positive("size", &self.size, |size| size.mean.0)?.draw(|size| size.0),
            think: self.think.as_ref().map_or(Draw::Fixed(0.0), |think| think.get().draw(|think| think.0.0)),
            new_connections: self.connection == Connection::New,
        })
    }
}
