//! Entries that are registered at run time: algorithms of a plug-in or a notebook.

use crate::{FILE, Kept, ParamKind, Parameter, kept_text};
use std::fmt;

/// Names that have another meaning in places that name an algorithm.
const RESERVED: [&str; 2] = ["off", "uncoupled"];

/// The facts about an entry that registration checks.
pub trait Entry: 'static {
    /// The entry's name in scenarios.
    fn name(&self) -> &'static str;
    /// The entry's aliases.
    fn aliases(&self) -> &'static [&'static str];
    /// The entry's declared parameters.
    fn parameters(&self) -> &'static [Parameter];
    /// The version of the entry's code, which results folders record; built-in entries have none.
    fn code_version(&self) -> Option<&'static str>;

    /// The entry's name and aliases.
    fn names(&self) -> impl Iterator<Item = &'static str> {
        std::iter::once(self.name()).chain(self.aliases().iter().copied())
    }
}

/// The registered entries. A static has them, until the program ends.
///
/// Nothing waits for another thread: a run depends on the entry that it found.
#[derive(Debug)]
pub struct Registered<E: Entry>(Kept<E>);

impl<E: Entry> Registered<E> {
    /// An empty list.
    #[must_use]
    pub const fn new() -> Self {
        Self(Kept::new())
    }

    /// The registered entries, in the order of their first registration.
    fn current(&'static self) -> Vec<&'static E> {
        let mut entries: Vec<&'static E> = Vec::new();
        for entry in self.0.iter() {
            match entries.iter_mut().find(|known| known.name() == entry.name()) {
                Some(known) => *known = entry,
                None => entries.push(entry),
            }
        }
        entries
    }

    /// The built-in entries, then the registered ones.
    pub fn after(&'static self, built_in: &[&'static E]) -> Vec<&'static E> {
        built_in.iter().copied().chain(self.current()).collect()
    }

    /// The entry with the name or alias `name`: a built-in one, or else a registered one.
    pub fn find(&'static self, name: &str, built_in: &[&'static E]) -> Option<&'static E> {
        let has_name = |entry: &&E| entry.names().any(|other| other == name);
        built_in.iter().copied().find(has_name).or_else(|| self.current().into_iter().find(has_name))
    }

    /// Adds an entry, or replaces the registered one of the same name; runs that are already set up keep the replaced
    /// entry.
    ///
    /// # Errors
    /// See [`RegisterError`]; the list is then unchanged.
    pub fn register(&'static self, entry: E, built_in: &[&'static E]) -> Result<&'static E, RegisterError> {
        self.0.add(entry, |entry| check(entry, built_in, &self.current()).err())
    }
}

impl<E: Entry> Default for Registered<E> {
    fn default() -> Self {
        Self::new()
    }
}

fn check<E: Entry>(entry: &E, built_in: &[&'static E], registered: &[&'static E]) -> Result<(), RegisterError> {
    for name in entry.names() {
        if !is_name(name) {
            return Err(RegisterError::BadName(name));
        }
        let others = registered.iter().filter(|known| known.name() != entry.name());
        if RESERVED.contains(&name) || built_in.iter().any(|known| known.names().any(|other| other == name)) {
            return Err(RegisterError::BuiltInName(name));
        }
        if let Some(other) = others.into_iter().find(|known| known.names().any(|other| other == name)) {
            return Err(RegisterError::TakenName { name, by: other.name() });
        }
    }
    if entry.code_version().is_none_or(str::is_empty) {
        return Err(RegisterError::NoCodeVersion(entry.name()));
    }
    let bad = |(index, parameter): (usize, &Parameter)| {
        let is_known = entry.parameters()[..index].iter().any(|other| other.name == parameter.name);
        let is_key = is_name(parameter.name) && parameter.name != "name";
        let is_file = matches!(parameter.kind, ParamKind::File);
        let has_default = match parameter.kind {
            ParamKind::Number { default, min, max } => (min..=max).contains(&default),
            ParamKind::Choice(choices) => !choices.is_empty(),
            ParamKind::File => true,
        };
        (is_known || !is_key || !has_default || is_file != (parameter.name == FILE)).then_some(parameter.name)
    };
    match entry.parameters().iter().enumerate().find_map(bad) {
        Some(parameter) => Err(RegisterError::BadParameter { entry: entry.name(), parameter }),
        None => Ok(()),
    }
}

/// Whether the name has only small letters, digits, `-` and `_`, and begins with a letter.
fn is_name(name: &str) -> bool {
    let is_inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-' || byte == b'_';
    name.starts_with(|first: char| first.is_ascii_lowercase()) && name.bytes().all(is_inner)
}

/// The version of a plug-in's code: package, version and a digest (FNV-1a) of its source files, which the plug-in
/// includes with `include_str!`.
#[must_use]
pub fn code_version(package: &str, version: &str, sources: &[&str]) -> &'static str {
    let digest = strings::fnv1a(sources.iter().flat_map(|source| source.bytes()));
    kept_text(format!("{package} {version} {digest:016x}"))
}

/// A refused registration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RegisterError {
    /// Not a name that a scenario can use.
    BadName(&'static str),
    /// The name of a built-in entry, or a word with another meaning.
    BuiltInName(&'static str),
    /// The name of another registered entry.
    TakenName {
        /// The name.
        name: &'static str,
        /// The entry that has it.
        by: &'static str,
    },
    /// The entry has no code version, so that results folders could not tell versions of its code apart.
    NoCodeVersion(&'static str),
    /// A parameter is declared twice, its name is not a valid key, or its default is outside its range.
    BadParameter {
        /// The entry.
        entry: &'static str,
        /// The parameter.
        parameter: &'static str,
    },
}

impl fmt::Display for RegisterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BadName(name) => {
                write!(
                    f,
                    "`{name}` is not a valid name: use small letters, digits, `-` and `_`, and begin with a letter"
                )
            }
            Self::BuiltInName(name) => write!(f, "`{name}` is built in and cannot be replaced: choose another name"),
            Self::TakenName { name, by } => write!(f, "`{name}` is already a name of `{by}`"),
            Self::NoCodeVersion(entry) => write!(f, "`{entry}` has no code version: results folders need one"),
            Self::BadParameter { entry, parameter } => write!(
                f,
                "parameter `{parameter}` of `{entry}`: needs a name of its own other than `name`, of small letters, \
                 digits, `-` and `_`, and a default within its range; `file` is the name of a file and of nothing else"
            ),
        }
    }
}

impl std::error::Error for RegisterError {}
