//! A value with its position in the file, for error messages.

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Deserialize;
use std::borrow::Cow;
use std::ops::Range;
use toml::Spanned;

/// A value with its position.
#[derive(Clone, Debug, Deserialize)]
#[serde(transparent)]
pub struct At<T>(Spanned<T>);

impl<T> At<T> {
    /// The value.
    pub fn get(&self) -> &T {
        self.0.get_ref()
    }

    /// Its position in the file, bytes.
    pub fn span(&self) -> Range<usize> {
        self.0.span()
    }
}

impl<T: JsonSchema> JsonSchema for At<T> {
    fn inline_schema() -> bool {
        T::inline_schema()
    }

    fn schema_name() -> Cow<'static, str> {
        T::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        T::json_schema(generator)
    }
}
