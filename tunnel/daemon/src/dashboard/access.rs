//! Who may see the dashboard and the metrics.
//!
//! On loopback, every client on this machine may. Pages of other sites that are open in a browser on this machine are
//! kept out by the check of the `Host` header (DNS rebinding) and by the absence of CORS headers. At any other address,
//! a client needs the token: as `Authorization: Bearer TOKEN`, or as the cookie that the first visit at `/?token=TOKEN`
//! sets.

use axum::http::header::{AUTHORIZATION, COOKIE, HOST};
use axum::http::{HeaderMap, HeaderName, Uri};
use std::io;
use std::net::{IpAddr, SocketAddr};
use zeroize::Zeroizing;

/// The name of the cookie.
const COOKIE_NAME: &str = "ropewalk-token";
/// The shortest token: 128 bits in base64.
const MIN_TOKEN_LEN: usize = 22;
const MAX_TOKEN_LEN: usize = 256;

/// Who may use a listener.
#[derive(Clone, Debug)]
pub enum Access {
    /// Clients that can open the unix socket.
    Socket,
    /// Programs of this machine, at the loopback address that the server listens on.
    Loopback(SocketAddr),
    /// Clients with the token.
    Token(Zeroizing<String>),
}

/// The decision on a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Decision {
    /// The request is answered.
    Allow,
    /// The response sets this cookie, and redirects to the page without the token in its address.
    SetCookie(String),
    /// The request is refused, for this reason.
    Refuse(&'static str),
}

/// The token at the beginning of a file's text.
///
/// # Errors
/// It is too short, too long, or has characters that a cookie cannot have.
pub(crate) fn parse_token(text: &str) -> io::Result<Zeroizing<String>> {
    let token = text.lines().next().unwrap_or_default().trim();
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || "+/=-_.".contains(c);
    if !(MIN_TOKEN_LEN..=MAX_TOKEN_LEN).contains(&token.len()) || !token.chars().all(is_allowed) {
        let problem = format!("a token has {MIN_TOKEN_LEN} to {MAX_TOKEN_LEN} letters, digits or any of `+/=-_.`");
        return Err(io::Error::new(io::ErrorKind::InvalidData, problem));
    }
    Ok(Zeroizing::new(token.to_owned()))
}

impl Access {
    /// The access rules of a listener at a TCP address. A listener that is not on loopback needs a token.
    ///
    /// # Errors
    /// It has none.
    pub(crate) fn of_tcp(address: SocketAddr, token: Option<Zeroizing<String>>) -> io::Result<Self> {
        match token {
            Some(token) => Ok(Self::Token(token)),
            None if address.ip().is_loopback() => Ok(Self::Loopback(address)),
            None => {
                Err(io::Error::new(io::ErrorKind::PermissionDenied, format!("{address} is not on loopback: no token")))
            }
        }
    }

    pub(super) fn decide(&self, uri: &Uri, headers: &HeaderMap) -> Decision {
        match self {
            Self::Socket => Decision::Allow,
            Self::Loopback(address) if is_own_host(headers, *address) => Decision::Allow,
            Self::Loopback(_) => Decision::Refuse("the Host header names another host than this one"),
            Self::Token(token) => decide_by_token(token, uri, headers),
        }
    }
}

/// Whether the `Host` header is `localhost` or the address itself, with any port, because the port may be forwarded.
fn is_own_host(headers: &HeaderMap, address: SocketAddr) -> bool {
    let Some(host) = headers.get(HOST).and_then(|host| host.to_str().ok()) else { return false };
    let name = match host.rsplit_once(':') {
        Some((name, port)) if !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    let literal = name.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    name.eq_ignore_ascii_case("localhost") || literal.is_ok_and(|ip| ip == address.ip() || ip.is_loopback())
}

fn decide_by_token(token: &str, uri: &Uri, headers: &HeaderMap) -> Decision {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    let bearer = text(AUTHORIZATION).and_then(|value| value.strip_prefix("Bearer "));
    let cookies = text(COOKIE).unwrap_or_default().split("; ");
    let cookie = cookies.filter_map(|cookie| cookie.split_once('=')).find(|(name, _)| *name == COOKIE_NAME);
    if [bearer, cookie.map(|(_, value)| value)].into_iter().flatten().any(|value| is_equal(value, token)) {
        return Decision::Allow;
    }
    let mut parameters = uri.query().unwrap_or_default().split('&');
    let given = parameters.find_map(|parameter| parameter.strip_prefix("token=")).map(percent_decode);
    if uri.path() == "/" && given.as_ref().is_some_and(|given| is_equal(given, token)) {
        // Without a path it is for the folder of the page, also below a path of a proxy. It goes along when a link of another
        // site opens the page (Lax), which only reads.
        let is_tls = text(HeaderName::from_static("x-forwarded-proto")) == Some("https");
        let secure = if is_tls { "; Secure" } else { "" };
        return Decision::SetCookie(format!("{COOKIE_NAME}={token}; HttpOnly; SameSite=Lax; Max-Age=2592000{secure}"));
    }
    if given.is_some() || bearer.is_some() {
        return Decision::Refuse("the token is not that of dashboard-token-file");
    }
    Decision::Refuse(
        "open /?token=TOKEN once, or send `Authorization: Bearer TOKEN`; dashboard-token-file has the token",
    )
}

/// Decodes percent-encoded characters, such as `%2B`.
fn percent_decode(text: &str) -> Zeroizing<String> {
    let mut decoded = Zeroizing::new(String::new());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('%') {
        decoded.push_str(before);
        let byte = after.get(..2).and_then(|digits| u8::from_str_radix(digits, 16).ok()).filter(u8::is_ascii);
        match byte {
            Some(byte) => decoded.push(byte.into()),
            None => decoded.push('%'),
        }
        rest = if byte.is_some() { &after[2..] } else { after };
    }
    decoded.push_str(rest);
    decoded
}

/// Comparison in a time that depends only on the lengths.
fn is_equal(given: &str, token: &str) -> bool {
    subtle::ConstantTimeEq::ct_eq(given.as_bytes(), token.as_bytes()).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOKEN: &str = "b64+of/128-bits-at-least==";

    fn decide(access: &Access, uri: &str, header: Option<(HeaderName, &str)>) -> Decision {
        let header = header.map(|(name, value)| (name, value.parse().unwrap()));
        access.decide(&uri.parse().unwrap(), &header.into_iter().collect())
    }

    fn refused(decision: &Decision) -> bool {
        matches!(decision, Decision::Refuse(_))
    }

    #[test]
    fn a_loopback_dashboard_answers_to_no_other_name() {
        let access = Access::Loopback("127.0.0.1:9780".parse().unwrap());
        for host in ["127.0.0.1:9780", "localhost:9780", "LOCALHOST", "[::1]:1", "127.0.0.1"] {
            assert_eq!(decide(&access, "/", Some((HOST, host))), Decision::Allow, "{host}");
        }
        for host in ["evil.example:9780", "127.0.0.1.evil.example", "localhost.evil.example", "", "192.0.2.1:9780"] {
            assert!(refused(&decide(&access, "/v1/status", Some((HOST, host)))), "{host}");
        }
        assert!(refused(&decide(&access, "/", None)));
    }

    #[test]
    fn a_token_is_taken_from_header_and_cookie_and_from_the_address_of_the_page_alone() {
        let access = Access::Token(Zeroizing::new(TOKEN.into()));
        let bearer = format!("Bearer {TOKEN}");
        let cookie = format!("a=b; {COOKIE_NAME}={TOKEN}");
        assert_eq!(decide(&access, "/v1/status", Some((AUTHORIZATION, &bearer))), Decision::Allow);
        assert_eq!(decide(&access, "/v1/status", Some((COOKIE, &cookie))), Decision::Allow);
        let first_visit = decide(&access, "/?token=b64%2Bof/128-bits-at-least==", None);
        assert!(matches!(first_visit, Decision::SetCookie(cookie) if cookie.contains("HttpOnly; SameSite=Lax")));
        assert!(refused(&decide(&access, &format!("/v1/status?token={TOKEN}"), None)));
        for (name, value) in [(AUTHORIZATION, "Bearer "), (AUTHORIZATION, TOKEN), (COOKIE, COOKIE_NAME)] {
            assert!(refused(&decide(&access, "/", Some((name, value)))), "{value}");
        }
        assert!(refused(&decide(&access, "/?token=%", None)) && refused(&decide(&access, "/?token=%c3%a4", None)));
    }
}
