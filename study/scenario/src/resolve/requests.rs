//! Flows of requests.

use super::checks::check_positive;
use crate::file::{Connection, Requests};
use crate::model::{self, Distribution};
use parse::Diagnostic;

pub(super) fn requests(table: &Requests) -> Result<model::Requests, Diagnostic> {
    Ok(model::Requests {
        size: check_positive("size", &table.size, |size| size.mean.0)?.distribution(|size| size.0),
        think: table
            .think
            .as_ref()
            .map_or(Distribution::Fixed(0.0), |think| think.get().distribution(|think| think.0.0)),
        new_connections: table.connection == Connection::New,
    })
}
