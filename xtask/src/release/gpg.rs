//! Signatures by GnuPG.

use crate::shell;
use std::path::Path;

/// A key of the user's GnuPG.
#[derive(Clone, Debug)]
pub(super) struct Key {
    fingerprint: String,
    /// The public key, in ASCII (RFC 9580, section 6).
    pub(super) public: String,
}

impl Key {
    /// The key of this fingerprint.
    pub(super) fn find(fingerprint: &str) -> Result<Self, String> {
        let public =
            shell::output(&format!("gpg --batch --armor --export-options export-minimal --export {fingerprint}"))?;
        if public.is_empty() {
            return Err(format!("GnuPG has no key {fingerprint}"));
        }
        Ok(Self { fingerprint: fingerprint.to_owned(), public })
    }

    /// Writes a detached signature of a file.
    pub(super) fn sign(&self, file: &Path, signature: &Path) -> Result<(), String> {
        self.run("--detach-sign", file, signature)
    }

    /// Writes a text with its signature around it.
    pub(super) fn clear_sign(&self, file: &Path, signed: &Path) -> Result<(), String> {
        self.run("--clear-sign", file, signed)
    }

    fn run(&self, verb: &str, file: &Path, output: &Path) -> Result<(), String> {
        let (key, file, output) = (&self.fingerprint, file.display(), output.display());
        shell::run(&format!(
            "gpg --batch --yes --armor --digest-algo SHA512 --local-user {key} --output {output} {verb} {file}"
        ))
    }
}
