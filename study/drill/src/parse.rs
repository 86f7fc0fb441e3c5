//! Statements of a script: options, commands, and events at their times.

use crate::call::{self, Call};
use crate::error::ScriptError;
use crate::packet::{self, Packet};
use crate::text::{Cursor, joined_lines, without_comments};

/// A script.
#[derive(Clone, Debug, Default)]
pub(crate) struct Script {
    /// Options of packetdrill's command line (`--name=value`), with their lines.
    pub options: Vec<(usize, String)>,
    /// Shell commands before the first event, with their lines.
    pub commands: Vec<(usize, String)>,
    pub events: Vec<Event>,
}

#[derive(Clone, Debug)]
pub(crate) struct Event {
    pub line: usize,
    pub time: Time,
    pub action: Action,
}

/// Time of an event, microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Time {
    /// Since the script began.
    At(u64),
    /// After the previous event, at the earliest and at the latest.
    After(u64, u64),
    /// At any time.
    Any,
}

#[derive(Clone, Debug)]
pub(crate) enum Action {
    /// A packet arrives from the peer.
    Inject(Packet),
    /// A packet must leave.
    Expect(Packet),
    Call(Call),
    /// Assertions on the connection's state.
    Code(String),
}

const EVENT_HELP: &str = "an event is like `0.1 < . 1:1(0) ack 1 win 800`, `+0 write(4, ..., 1000) = 1000` or \
                          `0.2 %{ assert tcpi_snd_cwnd == 10 }%`";
const COMMAND_WITHIN: &str = "a command within the script is not supported";
/// Latest time of an event: a day.
const MAX_MICROS: u64 = 86_400_000_000;

/// Reads a script.
pub(crate) fn parse(text: &str) -> Result<Script, ScriptError> {
    let text = without_comments(text)?;
    let mut cursor = Cursor::new(&text);
    let mut script = Script::default();
    loop {
        cursor.skip_space();
        let line = cursor.line();
        match cursor.peek() {
            None => return Ok(script),
            Some('-') => script.options.push((line, cursor.rest_of_line().to_owned())),
            Some('`') => script.add_command(line, command(&mut cursor)?)?,
            Some(_) => script.events.push(event(line, &mut cursor)?),
        }
    }
}

impl Script {
    /// Commands stand before the first event. After it, only commands that restore the kernel's settings are accepted; they
    /// have no effect here.
    fn add_command(&mut self, line: usize, command: &str) -> Result<(), ScriptError> {
        if self.events.is_empty() {
            let lines = joined_lines(command).into_iter().filter(|(_, text)| !text.is_empty());
            self.commands.extend(lines.map(|(offset, text)| (line + offset, text)));
        } else if !command.contains("sysctl_restore") {
            return Err(ScriptError::new(line, COMMAND_WITHIN, "commands stand before the first event"));
        }
        Ok(())
    }
}

fn command<'a>(cursor: &mut Cursor<'a>) -> Result<&'a str, ScriptError> {
    cursor.take("`");
    cursor.until("`")
}

fn event(line: usize, cursor: &mut Cursor<'_>) -> Result<Event, ScriptError> {
    let time = time(line, cursor)?;
    cursor.skip_blanks();
    if cursor.take("...") {
        // A call that blocks: it begins at the first time, and the time of its return is not checked.
        cursor.skip_blanks();
        cursor.take("+");
        seconds(line, cursor)?;
        cursor.skip_blanks();
    }
    Ok(Event { line, time, action: action(line, cursor)? })
}

fn action(line: usize, cursor: &mut Cursor<'_>) -> Result<Action, ScriptError> {
    if cursor.take("<") {
        packet::parse(line, cursor.rest_of_line()).map(Action::Inject)
    } else if cursor.take(">") {
        packet::parse(line, cursor.rest_of_line()).map(Action::Expect)
    } else if cursor.take("%{") {
        Ok(Action::Code(cursor.until("}%")?.to_owned()))
    } else if cursor.peek() == Some('`') {
        Err(ScriptError::new(line, COMMAND_WITHIN, "commands stand before the first event"))
    } else {
        call::parse(line, cursor.rest_of_line()).map(Action::Call)
    }
}

/// `0.1`, `+0.1`, `+0.1~+0.2` or `*`.
fn time(line: usize, cursor: &mut Cursor<'_>) -> Result<Time, ScriptError> {
    if cursor.take("*") {
        return Ok(Time::Any);
    }
    if !cursor.take("+") {
        return seconds(line, cursor).map(Time::At);
    }
    let from = seconds(line, cursor)?;
    if !cursor.take("~") {
        return Ok(Time::After(from, from));
    }
    cursor.take("+");
    let to = seconds(line, cursor)?;
    if to < from {
        return Err(ScriptError::new(line, "the range of time ends before it begins", "like `+0.1~+0.2`"));
    }
    Ok(Time::After(from, to))
}

/// Seconds with up to six decimals, as microseconds.
fn seconds(line: usize, cursor: &mut Cursor<'_>) -> Result<u64, ScriptError> {
    let whole = cursor.take_while(|c| c.is_ascii_digit());
    let is_range = cursor.clone().take("..");
    let decimals = if !is_range && cursor.take(".") { cursor.take_while(|c| c.is_ascii_digit()) } else { "" };
    micros(whole, decimals).ok_or_else(|| {
        ScriptError::new(line, "a time is missing, or is not a number of seconds with at most six decimals", EVENT_HELP)
    })
}

fn micros(whole: &str, decimals: &str) -> Option<u64> {
    if whole.is_empty() && decimals.is_empty() || decimals.len() > 6 {
        return None;
    }
    let whole: u64 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    let fraction: u64 = format!("{decimals:0<6}").parse().ok()?;
    whole.checked_mul(1_000_000)?.checked_add(fraction).filter(|micros| *micros <= MAX_MICROS)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(text: &str) -> Vec<Time> {
        parse(text).expect("valid").events.iter().map(|event| event.time).collect()
    }

    #[test]
    fn an_event_has_a_time() {
        let text = "0.1 close(3) = 0\n+.25 close(3) = 0\n+0.1~+0.2 > . 1:1(0) ack 1\n* > . 1:1(0) ack 1\n1 ... 2.5 connect(3) = 0";
        let expected = [
            Time::At(100_000),
            Time::After(250_000, 250_000),
            Time::After(100_000, 200_000),
            Time::Any,
            Time::At(1_000_000),
        ];
        assert_eq!(times(text), expected);
    }

    #[test]
    fn a_script_has_options_commands_and_events_with_their_lines() {
        let script =
            parse("--tolerance_usecs=5000\n`true`\n\n0 socket() = 3\n+0 %{\nassert 1 == 1\n}%").expect("valid");
        assert_eq!((script.options[0].0, script.commands[0].0), (1, 2));
        assert_eq!(script.events.iter().map(|event| event.line).collect::<Vec<_>>(), [4, 5]);
    }

    #[test]
    fn a_malformed_statement_is_refused_with_its_line() {
        let error = |text| parse(text).expect_err("malformed");
        assert_eq!(error("0 socket() = 3\nhello").line, 2);
        assert_eq!(error("0 socket() = 3\n+0 `tc qdisc show`").message, "a command within the script is not supported");
        assert_eq!(error("+0.2~+0.1 close(3) = 0").message, "the range of time ends before it begins");
        assert_eq!(error("0.1234567 close(3) = 0").line, 1);
        assert_eq!(error("0 %{ assert 1 == 1").message, "`}%` is missing");
    }
}
