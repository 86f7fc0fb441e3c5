//! `genkey`, `pubkey`, `genpsk`.

use crate::{Failure, output};
use std::io::{Read, stdin};

pub(super) fn print(key: &str) -> Result<(), Failure> {
    output::print(&format!("{key}\n"))
}

pub(super) fn pubkey() -> Result<(), Failure> {
    let mut private = String::new();
    let read = stdin().read_to_string(&mut private);
    read.map_err(|error| Failure::Environment(format!("cannot read the private key: {error}")))?;
    print(&daemon::keys::pubkey(&private).map_err(|error| Failure::Usage(format!("standard input: {error}")))?)
}
