//! The layout of a report: which tables, figures and claims it shows. The scenario file says it, and this reads it.

mod figure;
mod file;
mod fit;
mod model;
mod reference;
mod resolve;
mod schema;

pub(crate) use figure::FigureKind;
pub use figure::{Figure, Form, Scale};
pub use fit::Fit;
pub use model::{BY_FLOW, Claim, Column, HeatMap, Layout, Scope, Table, Test};
pub use reference::Reference;
pub(crate) use resolve::{read, read_fits};
pub use schema::schema;
