//! The columns of records: a record lists its fields once, for its type, for the tables that hold it, and for their readers.

/// Called with each column of a record, to write its value or to set it.
pub trait ColumnVisitor {
    /// A whole number.
    fn visit_u64(&mut self, name: &str, value: &mut Option<u64>, is_required: bool);
    /// A number.
    fn visit_f64(&mut self, name: &str, value: &mut Option<f64>, is_required: bool);
    /// A text.
    fn visit_string(&mut self, name: &str, value: &mut String);
    /// The columns of a part follow, which the record has or has not.
    fn begin_part(&mut self, is_there: bool);
    /// That part has ended. Returns whether the record has it; `is_empty` if its values are those of an empty one.
    fn end_part(&mut self, is_empty: bool) -> bool;
}

/// A record, or a part of one, with columns.
pub trait Columns: Clone + Default + PartialEq {
    /// Calls `visitor` with the name and the value of every column, always the same ones in the same order.
    fn visit(&mut self, visitor: &mut dyn ColumnVisitor);
}

/// The value of a field: one column, or several whose names begin with the field's.
pub trait Column {
    /// Calls `visitor` with each column.
    fn visit(&mut self, name: &str, visitor: &mut dyn ColumnVisitor);
}

impl Column for u64 {
    fn visit(&mut self, name: &str, visitor: &mut dyn ColumnVisitor) {
        let mut value = Some(*self);
        visitor.visit_u64(name, &mut value, true);
        *self = value.unwrap_or_default();
    }
}

impl Column for f64 {
    fn visit(&mut self, name: &str, visitor: &mut dyn ColumnVisitor) {
        let mut value = Some(*self);
        visitor.visit_f64(name, &mut value, true);
        *self = value.unwrap_or_default();
    }
}

impl Column for Option<u64> {
    fn visit(&mut self, name: &str, visitor: &mut dyn ColumnVisitor) {
        visitor.visit_u64(name, self, false);
    }
}

impl Column for Option<f64> {
    fn visit(&mut self, name: &str, visitor: &mut dyn ColumnVisitor) {
        visitor.visit_f64(name, self, false);
    }
}

impl Column for String {
    fn visit(&mut self, name: &str, visitor: &mut dyn ColumnVisitor) {
        visitor.visit_string(name, self);
    }
}

/// Visits the columns of a part that a record may lack.
pub(crate) fn visit_part<T: Clone + Default + PartialEq>(
    part: &mut Option<T>,
    visitor: &mut dyn ColumnVisitor,
    visit: impl FnOnce(&mut T, &mut dyn ColumnVisitor),
) {
    visitor.begin_part(part.is_some());
    let mut values = part.take().unwrap_or_default();
    visit(&mut values, visitor);
    *part = visitor.end_part(values == T::default()).then_some(values);
}

/// Declares a record. A field is a column of the same name, unless `=` gives the column another name. A record may have or
/// lack `parts`, whose columns are its own in tables and in JSON.
macro_rules! record {
    (
        $(#[$attributes:meta])*
        pub struct $name:ident {
            $($(#[$doc:meta])* $field:ident: $kind:ty $(= $column:literal)?,)*
        }
        $(parts { $($(#[$part_doc:meta])* $part:ident: $part_kind:ty,)* })?
    ) => {
        $(#[$attributes])*
        #[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
        pub struct $name {
            $($(#[$doc])* pub $field: $kind,)*
            $($($(#[$part_doc])* #[serde(flatten)] pub $part: Option<$part_kind>,)*)?
        }

        impl $crate::Columns for $name {
            fn visit(&mut self, visitor: &mut dyn $crate::ColumnVisitor) {
                $($crate::Column::visit(&mut self.$field, $crate::columns::record!(@name $field $($column)?), visitor);)*
                $($($crate::columns::visit_part(&mut self.$part, visitor, $crate::Columns::visit);)*)?
            }
        }
    };
    (@name $field:ident) => { stringify!($field) };
    (@name $field:ident $column:literal) => { $column };
}
pub(crate) use record;
