//! Flows of requests.

use super::checks::positive;
use crate::file::{Connection, Requests};
use crate::model::{self, Distribution};
use parse::Diagnostic;

pub(super) fn requests(given: &Requests) -> Result<model::Requests, Diagnostic> {
    Ok(model::Requests {
        size: positive("size", &given.size, |size| size.mean.0)?.distribution(|size| size.0),
        think: given
            .think
            .as_ref()
            .map_or(Distribution::Fixed(0.0), |think| think.get().distribution(|think| think.0.0)),
        new_connections: given.connection == Connection::New,
    })
}
