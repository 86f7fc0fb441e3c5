//! Several errors of one reading: the tree is read again without the part in which the latest error is, as long as that
//! yields errors that do not follow from the omission.

use parse::{Diagnostic, Node, element_name, key_at};
use toml::de::{DeArray, DeValue};

/// Maximum number of errors that are reported at once.
const MAX_ERRORS: usize = 10;
/// The lists whose elements nothing else of the experiment refers to: omitting one does not change the meaning of the
/// others.
const INDEPENDENT: [&str; 2] = ["flow", "event"];

/// A reading of a tree.
pub(crate) type Reading<'r> = &'r dyn Fn(&Node<'_>) -> Result<(), Diagnostic>;

/// The errors of `typed`, and those of `resolved` if they do not depend on parts that `typed` refused.
pub(crate) fn errors(mut tree: Node<'_>, typed: Reading<'_>, resolved: Reading<'_>) -> Vec<Diagnostic> {
    let mut search = Search { whole: tree.clone(), found: Vec::new(), incomplete: Vec::new() };
    search
        .run(&mut tree, typed, |key, is_missing, incomplete| is_missing && incomplete.iter().any(|table| table == key));
    if search.incomplete.iter().all(|table| is_independent(table)) {
        search.run(&mut tree, resolved, |key, _, incomplete| {
            !is_independent(key) || incomplete.iter().any(|table| table == key || is_below(key, table))
        });
    }
    search.found
}

/// Whether a key is below another one.
fn is_below(key: &str, table: &str) -> bool {
    key.strip_prefix(table).is_some_and(|rest| rest.starts_with('.')) && table.contains('.')
}

struct Search<'t> {
    /// The complete tree, by which keys are named.
    whole: Node<'t>,
    found: Vec<Diagnostic>,
    /// Keys of tables from which something was left out.
    incomplete: Vec<String>,
}

impl Search<'_> {
    /// Reads until there is no error, or none whose place can be left out. `follows` gets the place of an error, whether a
    /// key is missing there, and the incomplete tables; it returns whether the error may follow from these.
    fn run(&mut self, tree: &mut Node<'_>, read: Reading<'_>, follows: impl Fn(&str, bool, &[String]) -> bool) {
        while self.found.len() < MAX_ERRORS {
            let Err(mut diagnostic) = read(tree) else { return };
            let is_missing = !diagnostic.missing_key.is_empty();
            let [place, key] = [&*tree, &self.whole].map(|tree| key_at(tree, &diagnostic.span));
            if !follows(&key, is_missing, &self.incomplete) {
                if diagnostic.key.is_empty() {
                    let missing = Some(&diagnostic.missing_key).filter(|_| is_missing);
                    diagnostic.key =
                        [Some(&key), missing].into_iter().flatten().map(String::as_str).collect::<Vec<_>>().join(".");
                }
                self.found.push(diagnostic);
            }
            if !remove(tree, &place) {
                return;
            }
            self.incomplete.push(key.rsplit_once('.').map_or("", |(table, _)| table).to_owned());
        }
    }
}

/// Whether a key is an element of an independent list, or below one, or such a list.
fn is_independent(key: &str) -> bool {
    key.split('.').next().is_some_and(|list| INDEPENDENT.contains(&list))
}

/// Removes the value at a dotted key; false if there is none.
fn remove(node: &mut Node<'_>, key: &str) -> bool {
    let (part, rest) = key.split_once('.').map_or((key, None), |(part, rest)| (part, Some(rest)));
    match (node.get_mut(), rest) {
        (DeValue::Table(table), None) => table.remove(part).is_some(),
        (DeValue::Table(table), Some(rest)) => table.get_mut(part).is_some_and(|child| remove(child, rest)),
        (DeValue::Array(items), _) => {
            let Some(index) = (0..items.len()).find(|index| element_name(items, *index) == part) else { return false };
            match rest {
                None => {
                    let all = std::mem::replace(items, DeArray::new()).into_iter().enumerate();
                    *items = all.filter(|(at, _)| *at != index).map(|(_, item)| item).collect();
                    true
                }
                Some(rest) => items.as_mut().get_mut(index).is_some_and(|child| remove(child, rest)),
            }
        }
        _ => false,
    }
}
