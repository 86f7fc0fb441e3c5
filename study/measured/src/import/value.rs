//! Values of JSON by their place.

use serde_json::Value;

/// The number at a pointer as in RFC 6901.
pub(super) fn number(value: &Value, pointer: &str) -> Option<f64> {
    value.pointer(pointer)?.as_f64()
}

/// The number, unless it is 0, by which some programs say that they do not know it.
pub(super) fn positive(value: &Value, pointer: &str) -> Option<f64> {
    number(value, pointer).filter(|number| *number > 0.0)
}

/// The whole number at a pointer.
pub(super) fn count(value: &Value, pointer: &str) -> Option<u64> {
    value.pointer(pointer)?.as_u64()
}

/// The text at a pointer.
pub(super) fn text<'a>(value: &'a Value, pointer: &str) -> Option<&'a str> {
    value.pointer(pointer)?.as_str()
}

/// The elements of the list at a pointer.
pub(super) fn list<'a>(value: &'a Value, pointer: &str) -> &'a [Value] {
    value.pointer(pointer).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}
