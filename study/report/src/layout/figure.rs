//! Figures of a report: their kinds, and how a scenario file declares them.

use super::file::FigureFile;
use super::model::{BY_FLOW, BY_SUBFLOW, Scope};
use super::resolve::{Context, KeyUse, key_use};
use crate::copies;
use crate::plane::numbers_of_one_unit;
use parse::{Diagnostic, Spanned};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A chart with a line, bar, marker or area for each value of a swept key, or for each flow ([`BY_FLOW`]).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    /// Title; if empty, the name of the value is shown.
    pub title: String,
    /// The swept key whose values are the lines, the bars, the distributions, the markers or the areas.
    pub lines: String,
    /// What makes the figure something else than lines over time, bars, or a distribution.
    #[serde(default)]
    pub form: Form,
    /// Of bars and of lines across a key, the swept key along the axis.
    #[serde(default)]
    pub across: Option<String>,
    /// Distributions instead of lines over time: of the samples of a delay, or of a value over all cells.
    #[serde(default)]
    pub distribution: bool,
    /// Of distributions the value that is marked.
    #[serde(default)]
    pub threshold: Option<f64>,
    /// The scale of a distribution, or of the key along the axis.
    #[serde(default)]
    pub scale: Scale,
    /// Of lines a column of the time series, such as `cwnd_packets`; else a value as in a table, or a delay with samples.
    pub value: String,
    /// Of a scatter plot the value along the horizontal axis.
    #[serde(default)]
    pub against: Option<String>,
    /// The part of the study that is shown. Each setting of the other keys has a chart, or one sample in a
    /// distribution over cells.
    pub scope: Scope,
}

/// What a figure is, if its other keys do not say it: layouts of earlier versions have none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Form {
    /// Lines over time, bars across a key, or a distribution.
    #[default]
    Plain,
    /// Lines across a key.
    Across,
    /// A marker with an ellipse for each cell, one value against another.
    Scatter,
    /// The flows' shares over time, stacked.
    Stacked,
}

/// The scale of a figure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum Scale {
    /// Equal steps.
    #[default]
    Linear,
    /// Equal ratios of the swept key.
    Log,
    /// The complementary distribution: the share above, on a logarithmic axis.
    Ccdf,
}

/// The kind of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FigureKind<'f> {
    /// Lines over time.
    Lines,
    /// Bars across a swept key.
    Bars(&'f str),
    /// Lines with intervals across a swept key.
    Across(&'f str),
    /// Distributions of the samples of a delay.
    Samples,
    /// Distributions over all cells.
    Distribution,
    /// One value against another.
    Scatter(&'f str),
    /// Shares over time.
    Stacked,
}

impl Figure {
    /// The kind of the figure.
    pub(crate) fn kind(&self) -> FigureKind<'_> {
        match (self.form, &self.across, &self.against) {
            (Form::Scatter, _, Some(against)) => FigureKind::Scatter(against),
            (Form::Stacked, ..) => FigureKind::Stacked,
            (Form::Across, Some(across), _) => FigureKind::Across(across),
            (_, Some(across), _) => FigureKind::Bars(across),
            _ if self.distribution && copies::is_summary(&self.value) => FigureKind::Samples,
            _ if self.distribution => FigureKind::Distribution,
            _ => FigureKind::Lines,
        }
    }
}

fn refusal<T, K>(key: &Spanned<K>, message: &str, help: &str) -> Result<T, Diagnostic> {
    Err(Diagnostic::new(key.span(), message).with_help(help))
}

impl FigureFile {
    /// The one key that says what the figure is, by its name.
    fn kind(&self) -> Result<(&'static str, &Spanned<String>), Diagnostic> {
        let named = [
            ("lines", &self.lines),
            ("bars", &self.bars),
            ("distribution", &self.distribution),
            ("scatter", &self.scatter),
            ("stacked", &self.stacked),
        ];
        let mut kinds = named.into_iter().filter_map(|(name, key)| Some((name, key.as_ref()?)));
        match (kinds.next(), kinds.next()) {
            (Some(kind), None) => Ok(kind),
            (_, Some((_, key))) => {
                refusal(key, "a figure is of one kind", "one of lines, bars, distribution, scatter and stacked")
            }
            (None, None) => {
                let help = "lines = \"KEY\" over time or with across = \"KEY\", bars = \"KEY\" with across = \"KEY\", \
                            distribution = \"KEY\", scatter = \"KEY\" with against = \"VALUE\", or stacked = \"flow\"";
                refusal(&self.value, "a figure needs a key that says what it draws", help)
            }
        }
    }

    /// Refuses keys that the kind does not have, and a kind without those that it needs.
    fn check(&self, name: &str, key: &Spanned<String>) -> Result<(), Diagnostic> {
        match (name, &self.across, &self.against) {
            ("bars", None, _) => return refusal(key, "bars stand across a swept key", "across = \"KEY\""),
            ("scatter", _, None) => {
                return refusal(key, "a scatter plot has two values", "against = \"rtt_ms.p50\"");
            }
            ("distribution" | "scatter" | "stacked", Some(across), _) => {
                return refusal(across, "only lines and bars go across a key", "leave out `across`");
            }
            ("lines" | "bars" | "distribution" | "stacked", _, Some(against)) => {
                return refusal(against, "only a scatter plot has a second value", "leave out `against`");
            }
            _ => {}
        }
        if let (Some(threshold), true) = (&self.threshold, name != "distribution") {
            return refusal(threshold, "only a distribution has a threshold", "leave out `threshold`");
        }
        let is_over_time = name == "stacked" || (name == "lines" && self.across.is_none());
        if let (Some(attainable), true) = (self.scope().attainable, is_over_time) {
            return refusal(
                attainable,
                "values over time are no share of what is attainable",
                "leave out `attainable`",
            );
        }
        self.check_scale(name)
    }

    fn check_scale(&self, name: &str) -> Result<(), Diagnostic> {
        let is_of_samples = name == "distribution" && copies::is_summary(self.value.get());
        if let (true, Some(time)) = (is_of_samples, self.scope().times.into_iter().flatten().next()) {
            return refusal(time, "the samples of a delay are those of the whole run", "leave out `from` and `until`");
        }
        let Some(scale) = &self.scale else { return Ok(()) };
        match (scale.get(), name) {
            (Scale::Linear, _) => Ok(()),
            (Scale::Log, "lines") if self.across.is_some() => Ok(()),
            (Scale::Log, _) => refusal(
                scale,
                "only lines across a key have a logarithmic axis",
                "lines = \"KEY\" with across = \"KEY\"",
            ),
            (Scale::Ccdf, _) if is_of_samples => Ok(()),
            (Scale::Ccdf, _) => {
                let help = "distribution = \"KEY\" with a delay that has samples, such as value = \"rtt_ms\"";
                refusal(scale, "only the samples of a delay have a complementary distribution", help)
            }
        }
    }
}

impl Context<'_> {
    /// The figure of a file; none if a `--set` has taken away what it shows.
    pub(super) fn figure(&self, given: &FigureFile) -> Result<Option<Figure>, Diagnostic> {
        let (name, lines) = given.kind()?;
        given.check(name, lines)?;
        let is_over_time = name == "stacked" || (name == "lines" && given.across.is_none());
        if is_over_time && self.sample.is_none() {
            return refusal(lines, "a figure over time needs the time series", "set `sample`");
        }
        if name == "stacked" && ![BY_FLOW, BY_SUBFLOW].contains(&lines.get().as_str()) {
            let help = "stacked = \"flow\" or stacked = \"subflow\"";
            return refusal(lines, "shares are those of the flows or subflows of one run", help);
        }
        let by_subflow = lines.get() == BY_SUBFLOW;
        let key = if by_subflow { BY_FLOW } else { lines.get() };
        let keys: Vec<KeyUse<'_>> =
            std::iter::once((key, lines.span())).chain(given.across.as_ref().map(key_use)).collect();
        let Some(mut scope) = self.scope_with(&given.scope(), &keys)? else { return Ok(None) };
        if by_subflow {
            self.choose_subflows(&mut scope, lines)?;
        }
        if let ("lines", Some(across)) = (name, &given.across)
            && numbers_of_one_unit(&self.labels(across.get())).is_none()
        {
            let message = format!("the values of `{}` are not numbers of one unit", across.get());
            let help = "lines need a number along the axis; bars = \"KEY\" goes across any key";
            return refusal(across, &message, help);
        }
        let form = match name {
            "lines" if given.across.is_some() => Form::Across,
            "scatter" => Form::Scatter,
            "stacked" => Form::Stacked,
            _ => Form::Plain,
        };
        let text = |key: &Option<Spanned<String>>| key.as_ref().map(|key| key.get().clone());
        Ok(Some(Figure {
            title: given.title.clone(),
            lines: key.to_owned(),
            form,
            across: text(&given.across),
            distribution: name == "distribution",
            threshold: given.threshold.as_ref().map(|threshold| *threshold.get()),
            scale: given.scale.as_ref().map_or(Scale::Linear, |scale| *scale.get()),
            value: given.value.get().clone(),
            against: text(&given.against),
            scope,
        }))
    }

    /// Chooses all subflows, or those of the scope's flow, unless the scope names some.
    fn choose_subflows(&self, scope: &mut Scope, key: &Spanned<String>) -> Result<(), Diagnostic> {
        let flow = scope.flow.take();
        let is_shown =
            |name: &&String| name.split_once('/').is_some_and(|(of, _)| flow.as_ref().is_none_or(|flow| flow == of));
        let subflows: Vec<String> = self.flows.iter().filter(is_shown).cloned().collect();
        if subflows.is_empty() {
            let diagnostic = Diagnostic::new(key.span(), "no flow here has subflows");
            return Err(diagnostic.with_help("\"flow\" for a line per flow"));
        }
        scope.only.entry(BY_FLOW.to_owned()).or_insert(subflows);
        Ok(())
    }
}
