//! Assertions of embedded code: the subset of Python that describes a connection's state.
//!
//! `assert A` and `assert A, message`, where A compares sums and products of numbers and names, joined by `and`, `or`, `not`.
//! `print(...)`, which is meant for runs on a kernel, is skipped.

use crate::text::joined_lines;
use std::collections::BTreeMap;

/// Values of names.
pub(crate) type Names = BTreeMap<&'static str, i64>;

/// Greatest depth of parentheses.
const MAX_DEPTH: u32 = 32;

/// The statements of code that have an effect, each with its line from 0.
pub(crate) fn statements(code: &str) -> Vec<(usize, String)> {
    let lines = joined_lines(code);
    let lines = lines.iter().map(|(number, line)| (*number, line.split('#').next().unwrap_or_default()));
    let statements = lines.flat_map(|(number, line)| line.split(';').map(move |text| (number, text.trim())));
    let means_something = |text: &str| !text.is_empty() && !text.starts_with("print(");
    statements.filter(|(_, text)| means_something(text)).map(|(number, text)| (number, text.to_owned())).collect()
}

/// Whether the assertion in a statement holds. Errors quote the part that cannot be parsed.
pub(crate) fn holds(statement: &str, names: &Names) -> Result<bool, String> {
    let text =
        statement.strip_prefix("assert").ok_or_else(|| format!("`{statement}` is not supported: assert or print"))?;
    let mut parser = Parser { rest: text.trim_start(), names, depth: 0 };
    let value = parser.disjunction()?;
    match parser.rest.chars().next() {
        None | Some(',') => Ok(value != 0),
        Some(_) => Err(format!("`{}` is not understood", parser.rest)),
    }
}

/// The names of an assertion with their values.
pub(crate) fn values(statement: &str, names: &Names) -> String {
    let words = statement.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
    let mut values: Vec<String> = words
        .filter(|word| word.starts_with("tcpi_"))
        .filter_map(|word| Some(format!("{word} {}", names.get(word)?)))
        .collect();
    values.dedup();
    values.join(", ")
}

struct Parser<'a> {
    rest: &'a str,
    names: &'a Names,
    depth: u32,
}

type Value = Result<i64, String>;
type Comparison = fn(&i64, &i64) -> bool;

impl Parser<'_> {
    fn disjunction(&mut self) -> Value {
        let mut value = self.conjunction()?;
        while self.word("or") {
            value = i64::from((self.conjunction()? != 0) | (value != 0));
        }
        Ok(value)
    }

    fn conjunction(&mut self) -> Value {
        let mut value = self.negation()?;
        while self.word("and") {
            value = i64::from((self.negation()? != 0) & (value != 0));
        }
        Ok(value)
    }

    fn negation(&mut self) -> Value {
        let negates = self.word("not");
        let value = self.comparison()?;
        Ok(if negates { i64::from(value == 0) } else { value })
    }

    /// One comparison or several in a chain, as `1 <= a <= 2`.
    fn comparison(&mut self) -> Value {
        let mut left = self.sum()?;
        let mut holds = None;
        while let Some(compare) = self.operator() {
            let right = self.sum()?;
            holds = Some(holds.unwrap_or(true) && compare(&left, &right));
            left = right;
        }
        Ok(holds.map_or(left, i64::from))
    }

    fn operator(&mut self) -> Option<Comparison> {
        const OPERATORS: [(&str, Comparison); 6] =
            [("==", i64::eq), ("!=", i64::ne), ("<=", i64::le), (">=", i64::ge), ("<", i64::lt), (">", i64::gt)];
        OPERATORS.into_iter().find(|(text, _)| self.symbol(text)).map(|(_, compare)| compare)
    }

    fn sum(&mut self) -> Value {
        let mut value = self.product()?;
        loop {
            if self.symbol("+") {
                value = value.saturating_add(self.product()?);
            } else if self.symbol("-") {
                value = value.saturating_sub(self.product()?);
            } else {
                return Ok(value);
            }
        }
    }

    fn product(&mut self) -> Value {
        let mut value = self.atom()?;
        while self.symbol("*") {
            value = value.saturating_mul(self.atom()?);
        }
        Ok(value)
    }

    fn atom(&mut self) -> Value {
        if self.symbol("(") {
            return self.parenthesised();
        }
        let end = self.rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        let hexadecimal = || word.strip_prefix("0x").and_then(|digits| i64::from_str_radix(digits, 16).ok());
        let value = word.parse().ok().or_else(hexadecimal).or_else(|| self.names.get(word).copied());
        let value = value.ok_or_else(|| format!("`{word}{rest}` does not begin with a number or a known name"))?;
        self.rest = rest.trim_start();
        Ok(value)
    }

    fn parenthesised(&mut self) -> Value {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(format!("more than {MAX_DEPTH} parentheses within each other"));
        }
        let value = self.disjunction()?;
        self.depth -= 1;
        if self.symbol(")") { Ok(value) } else { Err(format!("`)` is missing before `{}`", self.rest)) }
    }

    /// Consumes a symbol if it is next.
    fn symbol(&mut self, symbol: &str) -> bool {
        let rest = self.rest.strip_prefix(symbol).map(str::trim_start);
        rest.inspect(|rest| self.rest = rest).is_some()
    }

    /// Consumes a word if it is next.
    fn word(&mut self, word: &str) -> bool {
        let rest = self
            .rest
            .strip_prefix(word)
            .filter(|rest| !rest.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_'));
        rest.inspect(|rest| self.rest = rest.trim_start()).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comparisons_are_chained_and_joined() {
        let names = Names::from([("tcpi_snd_cwnd", 10), ("TCP_CA_Open", 0)]);
        let holds = |text: &str| holds(&format!("assert {text}"), &names);
        assert_eq!(holds("tcpi_snd_cwnd == 10, 'cwnd'"), Ok(true));
        assert_eq!(holds("9 < tcpi_snd_cwnd <= 2 * (3 + 2) and not TCP_CA_Open"), Ok(true));
        assert_eq!(holds("(tcpi_snd_cwnd == 9 or 0x10 != 16)"), Ok(false));
        assert_eq!(holds("tcpi_rtt == 1"), Err("`tcpi_rtt == 1` does not begin with a number or a known name".into()));
        assert_eq!(holds("1 == 1 2"), Err("`2` is not understood".into()));
        assert!(holds(&"(".repeat(40)).is_err_and(|error| error.starts_with("more than 32")));
    }

    #[test]
    fn statements_keep_their_lines() {
        let code = "\nassert a == 1; assert b == 2 # why\nprint(a)\nassert c \\\n == 3";
        let expected = [(1, "assert a == 1"), (1, "assert b == 2"), (3, "assert c == 3")];
        assert_eq!(statements(code), expected.map(|(line, text)| (line, text.to_owned())));
    }
}
