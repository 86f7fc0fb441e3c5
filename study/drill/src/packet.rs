//! A packet's line: `[ecn] flags seq:end(length) ack N win N <options>`.

use crate::error::ScriptError;

/// A TCP packet that arrives or must leave. Numbers are those of the script: bytes, relative to the initial sequence
/// numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Packet {
    pub is_ce: bool,
    pub flags: String,
    pub seq: u64,
    pub len: u64,
    pub ack: Option<u64>,
    pub window: Option<u64>,
    pub options: Option<TcpOptions>,
}

/// The options of a packet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct TcpOptions {
    pub mss: Option<u64>,
    pub window_scale: Option<u64>,
    pub sack_ok: bool,
    pub sack: Vec<(u64, u64)>,
    /// TSval and TSecr.
    pub timestamps: Option<(u32, u32)>,
    /// `<...>`: any options.
    pub any: bool,
}

impl Packet {
    pub(crate) fn has(&self, flag: char) -> bool {
        self.flags.contains(flag)
    }

    pub(crate) fn end(&self) -> u64 {
        self.seq + self.len
    }
}

const PACKET_HELP: &str = "a packet is like `P. 1:1001(1000) ack 1 win 800 <sack 2001:3001,nop,nop>`";
/// Greatest number: sequence numbers have 32 bits.
const MAX_NUMBER: u64 = u32::MAX as u64;

/// Reads a packet, without the `<` or `>` of its direction.
pub(crate) fn parse(line: usize, text: &str) -> Result<Packet, ScriptError> {
    let fault = |message: String| ScriptError::new(line, message, PACKET_HELP);
    let (head, options) = match text.split_once('<') {
        Some((head, rest)) => {
            let (options, end) =
                rest.split_once('>').ok_or_else(|| fault("`>` after the options is missing".into()))?;
            no_more(end).map_err(fault)?;
            (head, Some(parse_options(options).map_err(fault)?))
        }
        None => (text, None),
    };
    parse_head(head, options).map_err(fault)
}

fn parse_head(head: &str, options: Option<TcpOptions>) -> Result<Packet, String> {
    let mut words = head.split_whitespace().peekable();
    let ecn = words.next_if(|word| word.starts_with('[')).unwrap_or_default();
    if !["", "[noecn]", "[ect0]", "[ect1]", "[ect01]", "[ce]"].contains(&ecn) {
        return Err(format!("`{ecn}` is not supported: [noecn], [ect0], [ect1], [ect01] or [ce]"));
    }
    let flags = words.next().ok_or("the flags are missing")?.to_owned();
    if !flags.chars().all(|flag| "SFRP.EW".contains(flag)) {
        return Err(format!("`{flags}` are not supported TCP flags: S F R P . E W"));
    }
    let (seq, len) = range(words.next().ok_or("the sequence numbers are missing")?)?;
    let mut packet = Packet { is_ce: ecn == "[ce]", flags, seq, len, options, ..Packet::default() };
    while let Some(word) = words.next() {
        let value = Some(number(words.next().unwrap_or_default())?);
        match word {
            "ack" => packet.ack = value,
            "win" => packet.window = value,
            other => return Err(format!("`{other}` is not supported: ack or win")),
        }
    }
    Ok(packet)
}

/// `1:1001(1000)`: the first byte and the length.
fn range(word: &str) -> Result<(u64, u64), String> {
    let parts = word.strip_suffix(')').and_then(|word| word.split_once('('));
    let ((start, end), len) = parts
        .and_then(|(range, len)| Some((range.split_once(':')?, len)))
        .ok_or_else(|| format!("`{word}` are not sequence numbers"))?;
    let (start, end, len) = (number(start)?, number(end)?, number(len)?);
    if start + len != end {
        return Err(format!("`{word}`: {start} to {end} is not {len} bytes"));
    }
    Ok((start, len))
}

fn parse_options(text: &str) -> Result<TcpOptions, String> {
    let mut options = TcpOptions::default();
    for option in text.split(',').map(str::trim) {
        let words: Vec<&str> = option.split_whitespace().collect();
        match words[..] {
            ["..."] => options.any = true,
            ["nop" | "eol"] | [] => {}
            ["sackOK"] => options.sack_ok = true,
            ["mss", mss] => options.mss = Some(number(mss)?),
            ["wscale", shift] => options.window_scale = Some(number(shift)?.min(14)),
            ["sack", ref blocks @ ..] => {
                options.sack = blocks.iter().map(|block| sack(block)).collect::<Result<_, _>>()?;
            }
            ["TS", "val", val, "ecr", ecr] => options.timestamps = Some((number(val)? as u32, number(ecr)? as u32)),
            _ => return Err(format!("the option `{option}` is not supported")),
        }
    }
    Ok(options)
}

fn sack(block: &str) -> Result<(u64, u64), String> {
    let (start, end) = block.split_once(':').ok_or_else(|| format!("`{block}` is not a SACK block"))?;
    let (start, end) = (number(start)?, number(end)?);
    if start < end { Ok((start, end)) } else { Err(format!("the SACK block `{block}` is empty")) }
}

fn number(word: &str) -> Result<u64, String> {
    let number = word.parse().ok().filter(|number| *number <= MAX_NUMBER);
    number.ok_or_else(|| format!("`{word}` is not a number of at most {MAX_NUMBER}"))
}

fn no_more(text: &str) -> Result<(), String> {
    if text.trim().is_empty() { Ok(()) } else { Err(format!("`{}` follows the options", text.trim())) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_has_flags_numbers_and_options() {
        let packet =
            parse(1, "[ce] P. 1:1001(1000) ack 7 win 800 <sack 1001:3001,nop,nop,TS val 5 ecr 6>").expect("valid");
        assert_eq!((packet.is_ce, packet.end(), packet.ack, packet.window), (true, 1001, Some(7), Some(800)));
        let options = packet.options.expect("there are");
        assert_eq!((options.sack, options.timestamps, options.any), (vec![(1001, 3001)], Some((5, 6)), false));
    }

    #[test]
    fn a_malformed_packet_is_refused_with_its_fault() {
        let fault = |text| parse(3, text).expect_err("malformed").to_string();
        assert!(
            fault("P. 1:1001(999) ack 1").contains("line 3: `1:1001(999)`: 1 to 1001 is not 999 bytes; a packet is")
        );
        assert!(fault("PX 1:1(0)").contains("`PX` are not supported TCP flags"));
        assert!(fault(". 1:1(0) urg 4").contains("`urg` is not supported"));
        assert!(fault(". 1:1(0) ack 1 <sack 5:5>").contains("the SACK block `5:5` is empty"));
        assert!(fault(". 1:1(0) ack 99999999999").contains("`99999999999` is not a number"));
    }
}
