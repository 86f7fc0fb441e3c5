//! A key of 32 bytes, written as WireGuard writes it: base64, 44 characters.

use data_encoding::BASE64;
use std::fmt;

/// 32 bytes. Whether they are secret or not, they are never shown by accident: ask for [`Key::to_base64`].
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Key(pub [u8; 32]);

impl Key {
    /// Reads 44 characters of base64; blanks around them do not count. What is wrong is told without repeating any of it.
    ///
    /// # Errors
    /// Any other text.
    pub fn read(text: &str) -> Result<Self, &'static str> {
        let bytes = BASE64.decode(text.trim().as_bytes()).map_err(|_| "this is no base64")?;
        bytes.try_into().map(Self).map_err(|_| "a key has 32 bytes: 44 characters of base64")
    }

    /// As WireGuard writes it.
    #[must_use]
    pub fn to_base64(&self) -> String {
        BASE64.encode(&self.0)
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(a key)")
    }
}
