//! `genkey`, `pubkey`, `genpsk`.

use crate::{Failure, output};
use std::fs::File;
use std::io::stdin;
use std::os::fd::AsFd;

pub(super) fn print(key: &str) -> Result<(), Failure> {
    output::print(key)?;
    output::print("\n")
}

pub(super) fn pubkey() -> Result<(), Failure> {
    // The standard library's reader is not used, because its buffer is never wiped.
    let private = stdin().as_fd().try_clone_to_owned().and_then(|source| daemon::keys::read(File::from(source)));
    let private = private.map_err(|error| Failure::Environment(format!("cannot read the private key: {error}")))?;
    print(&daemon::keys::pubkey(&private).map_err(|error| Failure::Usage(format!("standard input: {error}")))?)
}
