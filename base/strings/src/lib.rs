//! Functions on bytes and text that several crates share: hashes (FNV-1a), words for a shell, text in HTML.

mod fnv;
mod html;
mod shell;

pub use fnv::{OFFSET_BASIS, PRIME, fnv1a, fnv1a_32};
pub use html::escape_html;
pub use shell::{shell_quoted, shell_word};
