//! Tokens as they are printed: for people with a QR code, as lines, and as JSON.

use super::clients::date;
use super::qr;
use super::token::Token;
use crate::{Failure, output};
use ipnet::IpNet;
use serde::Serialize;
use zeroize::Zeroizing;

/// A token, as `--json` prints it.
#[derive(Serialize)]
struct TokenDocument {
    name: String,
    /// A secret.
    token: Zeroizing<String>,
    token_expires_unix_s: u32,
    addresses: Vec<IpNet>,
    lans: Vec<IpNet>,
}

/// Prints tokens as JSON.
pub(super) fn print_as_json(tokens: &[Token]) -> Result<(), Failure> {
    let document = |token: &Token| TokenDocument {
        name: token.name.clone(),
        token: token.encode(),
        token_expires_unix_s: token.expires,
        addresses: token.addresses.clone(),
        lans: token.lans.clone(),
    };
    output::json(&tokens.iter().map(document).collect::<Vec<_>>())
}

/// Prints tokens, a line each with the client's name.
pub(super) fn print_tokens(tokens: &[Token], hours: u32) -> Result<(), Failure> {
    output::warn(&format!(
        "Tokens, which are secrets, work once and within {hours} h. On each client: `ropewalk setup client -`, and its token"
    ));
    let line = |token: &Token| format!("{}  {}\n", token.name, *token.encode());
    output::print(&Zeroizing::new(tokens.iter().map(line).collect::<String>()))
}

/// Prints a token, on a terminal also as a QR code.
pub(super) fn print_token(token: &Token, hours: u32) -> Result<(), Failure> {
    let text = token.encode();
    let code = qr::lines(&text, output::width()).map(|lines| lines.join("\n") + "\n\n");
    if let (Some(code), true) = (code, output::is_terminal()) {
        output::print(&code)?;
    }
    output::warn(&format!(
        "The token of {}, a secret, which works once and within {hours} h (until {}). On the client, the command, and the token when it asks for it:",
        token.name,
        date(u64::from(token.expires))
    ));
    output::print(&format!("ropewalk setup client -\n{}\n", *text))
}
