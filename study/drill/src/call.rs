//! System calls of a script that matter to a sender or receiver.

use crate::error::ScriptError;

/// A system call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Call {
    /// A call that makes or prepares a socket, or reads.
    Nothing,
    Connect,
    /// The application writes this many bytes.
    Write(u64),
    /// A socket option.
    Option(SocketOption),
    /// The application closes the connection, which ends the script.
    Close,
}

/// A socket option.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SocketOption {
    SendBuffer(u64),
    ReceiveBuffer(u64),
    NotsentLowat(u64),
    Congestion(String),
}

/// Greatest size of a write or buffer, bytes.
const MAX_BYTES: u64 = 64 << 20;
const SUPPORTED: &str = "supported are socket, bind, listen, accept, fcntl, connect, read, recv, setsockopt, write, send, \
                         sendto, close and shutdown";

/// Reads a call from `name(arguments) = result`.
pub(crate) fn parse(line: usize, text: &str) -> Result<Call, ScriptError> {
    let fault = |message: String| ScriptError::new(line, message, SUPPORTED);
    let (name, rest) = text.split_once('(').ok_or_else(|| fault(format!("`{text}` is not an event")))?;
    let (arguments, result) = split_result(rest).ok_or_else(|| fault(format!("the result of {name}() is missing")))?;
    let arguments: Vec<&str> = arguments.split(',').map(str::trim).collect();
    match name.trim() {
        "socket" | "bind" | "listen" | "accept" | "fcntl" | "read" | "recv" => Ok(Call::Nothing),
        "connect" => Ok(Call::Connect),
        "close" | "shutdown" => Ok(Call::Close),
        "write" | "send" | "sendto" => write(&arguments, result).map_err(fault),
        "setsockopt" => option(&arguments).map_err(fault),
        other => Err(fault(format!("{other}() is not supported"))),
    }
}

/// Arguments and result: the texts before and after `) =`.
fn split_result(text: &str) -> Option<(&str, &str)> {
    let ends = text.match_indices(')').map(|(at, _)| (&text[..at], text[at + 1..].trim_start()));
    ends.filter_map(|(arguments, rest)| Some((arguments, rest.strip_prefix('=')?))).next()
}

fn write(arguments: &[&str], result: &str) -> Result<Call, String> {
    if let Some(flag) = arguments.iter().skip(3).find(|argument| argument.contains("MSG_")) {
        return Err(format!("the flag {flag} is not supported"));
    }
    let asked = bytes(arguments.get(2).copied().unwrap_or_default())?;
    let written = bytes(result.split_whitespace().next().unwrap_or_default())?;
    if asked != written {
        return Err(format!("a write that is cut short ({written} of {asked} bytes) is not supported"));
    }
    Ok(Call::Write(asked))
}

fn option(arguments: &[&str]) -> Result<Call, String> {
    let name = arguments.get(2).copied().unwrap_or_default();
    let value = arguments.get(3).copied().unwrap_or_default();
    let option = match name {
        "SO_REUSEADDR" | "TCP_NODELAY" => return Ok(Call::Nothing),
        "SO_SNDBUF" => SocketOption::SendBuffer(boxed(value)?),
        "SO_RCVBUF" => SocketOption::ReceiveBuffer(boxed(value)?),
        "TCP_NOTSENT_LOWAT" => SocketOption::NotsentLowat(boxed(value)?),
        "TCP_CONGESTION" => SocketOption::Congestion(value.trim_matches('"').to_owned()),
        other => return Err(format!("the socket option `{other}` is not supported")),
    };
    Ok(Call::Option(option))
}

/// The number in `[number]`.
fn boxed(word: &str) -> Result<u64, String> {
    let number = word.strip_prefix('[').and_then(|word| word.strip_suffix(']'));
    bytes(number.ok_or_else(|| format!("`{word}` is not a value like [4000000]"))?)
}

fn bytes(word: &str) -> Result<u64, String> {
    let bytes = word.parse().ok().filter(|bytes| (1..=MAX_BYTES).contains(bytes));
    bytes.ok_or_else(|| format!("`{word}` is not a number of bytes from 1 to {MAX_BYTES}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_read_or_refused() {
        assert_eq!(parse(1, "write(4, ..., 1000) = 1000"), Ok(Call::Write(1000)));
        let cubic = SocketOption::Congestion("cubic".into());
        assert_eq!(parse(1, "setsockopt(4, SOL_TCP, TCP_CONGESTION, \"cubic\", 5) = 0"), Ok(Call::Option(cubic)));
        let fault = |text| parse(9, text).expect_err("refused").message;
        assert_eq!(
            fault("write(4, ..., 1000) = 500"),
            "a write that is cut short (500 of 1000 bytes) is not supported"
        );
        assert_eq!(
            fault("setsockopt(4, SOL_TCP, TCP_CORK, [1], 4) = 0"),
            "the socket option `TCP_CORK` is not supported"
        );
        assert_eq!(parse(1, "fcntl(3, F_GETFL) = 0x2 (flags O_RDWR)"), Ok(Call::Nothing));
        assert_eq!(fault("epoll_wait(5, 6) = 1"), "epoll_wait() is not supported");
        assert_eq!(fault("hello"), "`hello` is not an event");
    }
}
