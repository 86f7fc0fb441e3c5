//! The name of a path, as its opener has it in its configuration.

use crate::Malformed;
use crate::reader::Reader;
use core::fmt;

/// Maximum length of a name, bytes.
pub const MAX_PATH_NAME_LEN: usize = 32;

/// The name of a path: 1 to [`MAX_PATH_NAME_LEN`] letters and digits of ASCII, and `.`, `_`, `-`, `:`, `@` and `+`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct PathName {
    length: u8,
    bytes: [u8; MAX_PATH_NAME_LEN],
}

impl PathName {
    /// The name that is nearest to `text`: its beginning, with `-` for the bytes that a name cannot have. `None` if it is
    /// empty.
    #[must_use]
    pub fn nearest_to(text: &str) -> Option<Self> {
        let mut name = Self { length: text.len().min(MAX_PATH_NAME_LEN) as u8, bytes: [0; MAX_PATH_NAME_LEN] };
        let allowed = |byte: u8| if is_allowed(byte) { byte } else { b'-' };
        name.bytes.iter_mut().zip(text.bytes()).for_each(|(place, byte)| *place = allowed(byte));
        (name.length > 0).then_some(name)
    }

    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        core::str::from_utf8(self.as_bytes()).expect("ASCII")
    }

    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }

    pub(super) fn read(bytes: &mut Reader<'_>) -> Result<Self, Malformed> {
        let length = bytes.u8()?;
        if !(1..=MAX_PATH_NAME_LEN).contains(&usize::from(length)) {
            return Err(Malformed::Value);
        }
        let mut name = Self { length, bytes: [0; MAX_PATH_NAME_LEN] };
        for place in &mut name.bytes[..usize::from(length)] {
            *place = bytes.u8()?;
            if !is_allowed(*place) {
                return Err(Malformed::Value);
            }
        }
        Ok(name)
    }
}

fn is_allowed(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"._-:@+".contains(&byte)
}

impl fmt::Debug for PathName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_str().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_bounded_and_of_few_characters() {
        let name = |text: &str| PathName::nearest_to(text).map(|name| name.as_str().to_owned());
        assert_eq!(name("wwan0").as_deref(), Some("wwan0"));
        assert_eq!(name("fe80::1@eth1").as_deref(), Some("fe80::1@eth1"));
        assert_eq!(name("DSL im Büro<b>").as_deref(), Some("DSL-im-B--ro-b-"));
        assert_eq!((name(""), name(&"x".repeat(99))), (None, Some("x".repeat(MAX_PATH_NAME_LEN))));
    }
}
