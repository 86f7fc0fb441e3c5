//! Fitted constants as recipes: the key that is free, what it was fitted to, and where to search.

use super::file::FitFile;
use super::model::Scope;
use parse::{Diagnostic, Spanned};

/// A constant of a scenario that was chosen so that a value reaches a target.
#[derive(Clone, Debug, PartialEq)]
pub struct Fit {
    /// What the constant was chosen for.
    pub says: String,
    /// The source of the target.
    pub source: String,
    /// The key of the constant, as `--set` takes it.
    pub key: String,
    /// The constant, in `unit`.
    pub chosen: f64,
    /// The least and the greatest constant that a search tries, in `unit`.
    pub between: [f64; 2],
    /// What follows the number in the file, such as `us`; may be empty.
    pub unit: String,
    /// The value that has a target.
    pub value: String,
    /// The cells over which its mean is taken.
    pub scope: Scope,
    /// The target, in the unit of the value.
    pub target: f64,
    /// How precisely the target is known, in the unit of the value.
    pub tolerance: f64,
}

impl Fit {
    /// The fit of a file with its scope.
    pub(super) fn checked(given: &FitFile, scope: Scope) -> Result<Self, Diagnostic> {
        let (chosen, unit) = quantity(given.chosen.get(), &given.chosen)?;
        let [low, high] = given.between.get().each_ref().map(|text| quantity(text, &given.between));
        let ((low, low_unit), (high, high_unit)) = (low?, high?);
        if [low_unit, high_unit] != [unit; 2] || !(low..=high).contains(&chosen) || low >= high {
            let diagnostic = Diagnostic::new(given.between.span(), "the bounds of a fit are not about its constant");
            let help = format!("in the unit of `chosen`: less and more than {}", given.chosen.get());
            return Err(diagnostic.with_help(help));
        }
        let (target, within) = (*given.target.get(), given.within.get().0);
        if !(target.is_finite() && target > 0.0) {
            return Err(Diagnostic::new(given.target.span(), "the target of a fit must be more than zero"));
        }
        if within <= 0.0 {
            let diagnostic = Diagnostic::new(given.within.span(), "no measurement meets its target exactly");
            return Err(diagnostic.with_help("how precisely the target is known: within = \"2%\""));
        }
        Ok(Self {
            says: given.says.get().clone(),
            source: given.source.clone(),
            key: given.key.get().clone(),
            chosen,
            between: [low, high],
            unit: unit.to_owned(),
            value: given.value.clone(),
            scope,
            target,
            tolerance: within * target,
        })
    }
}

/// The number and the unit of a text such as `250us`.
fn quantity<'t, T>(text: &'t str, place: &Spanned<T>) -> Result<(f64, &'t str), Diagnostic> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let number = text[..end].parse().map_err(|_| {
        Diagnostic::new(place.span(), format!("`{text}` does not begin with a number")).with_help("such as 250us")
    })?;
    Ok((number, &text[end..]))
}
