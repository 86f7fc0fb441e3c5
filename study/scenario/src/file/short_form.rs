//! Values with a short and a long form: `loss = "1%"` or a table, `jitter = "8ms"` or a table, `reorder = "1%"` or a
//! table, `congestion = "cubic"` or a table.

use crate::model;
use link::{JitterDistribution, LossModel, Reordering};
use params::ParamValue;
use parse::{Percent, Quantity, Spanned, Time};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, Error, MapAccess, Visitor};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::num::NonZeroU32;

/// Loss: a share, or the four numbers of Gilbert and Elliott.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Loss(pub(crate) LossModel);

/// Jitter: its greatest delay, or what netem has.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Jitter(pub(crate) link::Jitter);

/// A congestion control or a scheduler: a name, or a table with `name` and its parameters.
#[derive(Clone, Debug)]
pub(crate) struct Algorithm {
    /// Name and parameters, without the file.
    pub(crate) choice: model::AlgorithmChoice,
    /// The path under [`params::FILE`].
    pub(crate) file: Option<Spanned<String>>,
}

/// Loss in bursts (Gilbert-Elliott): each packet first moves the state, then is lost with the state's probability.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "burst-loss")]
struct BurstLoss {
    /// Probability, per packet, of moving from the good state to the bad state.
    to_bad: Percent,
    /// Probability, per packet, of moving from the bad state to the good state.
    to_good: Percent,
    /// Loss in the bad state.
    bad: Option<Percent>,
    /// Loss in the good state.
    good: Option<Percent>,
}

impl From<BurstLoss> for Loss {
    fn from(loss: BurstLoss) -> Self {
        Self(LossModel::GilbertElliott {
            to_bad: loss.to_bad.0,
            to_good: loss.to_good.0,
            loss_bad: loss.bad.map_or(1.0, |share| share.0),
            loss_good: loss.good.map_or(0.0, |share| share.0),
        })
    }
}

impl From<Percent> for Loss {
    fn from(Percent(share): Percent) -> Self {
        Self(if share == 0.0 { LossModel::None } else { LossModel::Random(share) })
    }
}

/// Jitter as netem has it: `delay TIME SPAN CORRELATION distribution NAME`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "jitter-distribution")]
struct NetemJitter {
    /// How far the delay varies. For a normal distribution it is the standard deviation.
    span: Time,
    /// How the delay varies. Default: `"uniform"`.
    #[serde(default)]
    distribution: Distribution,
    /// Weight of the draw of the previous packet in the next draw. Default: `"0%"`.
    correlation: Option<Percent>,
    /// Whether packets overtake others, as in netem. `false` keeps the order, as netem does with a rate.
    #[serde(default = "reorders")]
    reorder: bool,
}

fn reorders() -> bool {
    true
}

/// A distribution of delays.
#[derive(Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "delay-distribution")]
enum Distribution {
    /// Uniform from `delay - span` to `delay + span`.
    #[default]
    Uniform,
    /// Normal, with `span` as the standard deviation.
    Normal,
    /// Pareto (netem's table): most packets are slightly early, and few are late by up to four times `span`.
    Pareto,
    /// A quarter normal, three quarters Pareto (netem's table).
    ParetoNormal,
}

impl From<NetemJitter> for Jitter {
    fn from(jitter: NetemJitter) -> Self {
        Self(link::Jitter {
            span: jitter.span.0,
            distribution: match jitter.distribution {
                Distribution::Uniform => JitterDistribution::Uniform,
                Distribution::Normal => JitterDistribution::Normal,
                Distribution::Pareto => JitterDistribution::Pareto,
                Distribution::ParetoNormal => JitterDistribution::ParetoNormal,
            },
            correlation: jitter.correlation.map_or(0.0, |share| share.0),
            reorders: jitter.reorder,
        })
    }
}

struct JitterVisitor;

impl<'de> Visitor<'de> for JitterVisitor {
    type Value = Jitter;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a time such as \"8ms\", or { span, distribution, correlation, reorder }")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Jitter, E> {
        Time::parse(text).map(|time| Jitter(time.0.into())).map_err(E::custom)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Jitter, A::Error> {
        NetemJitter::deserialize(MapAccessDeserializer::new(map)).map(Jitter::from)
    }
}

/// Packets that are not delayed: a share, or what netem has.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reorder(pub(crate) Reordering);

/// Reordering as netem has it: `reorder SHARE CORRELATION gap GAP`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "reordering")]
struct NetemReorder {
    /// Share of the packets that are not delayed.
    share: Percent,
    /// Weight of the draw of the previous packet in the next draw. Default: `"0%"`.
    correlation: Option<Percent>,
    /// Among this many packets in a row, at most one skips the delay. Default: 1.
    gap: Option<NonZeroU32>,
}

impl From<NetemReorder> for Reorder {
    fn from(reorder: NetemReorder) -> Self {
        Self(Reordering {
            share: reorder.share.0,
            correlation: reorder.correlation.map_or(0.0, |share| share.0),
            gap: reorder.gap.map_or(1, NonZeroU32::get),
        })
    }
}

struct ReorderVisitor;

impl<'de> Visitor<'de> for ReorderVisitor {
    type Value = Reorder;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a share such as \"1%\", or { share, correlation, gap }")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Reorder, E> {
        Percent::parse(text).map(|share| Reorder(share.0.into())).map_err(E::custom)
    }

    fn visit_i64<E: Error>(self, n: i64) -> Result<Reorder, E> {
        self.visit_str(&n.to_string())
    }

    fn visit_f64<E: Error>(self, n: f64) -> Result<Reorder, E> {
        self.visit_str(&n.to_string())
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Reorder, A::Error> {
        NetemReorder::deserialize(MapAccessDeserializer::new(map)).map(Reorder::from)
    }
}

struct LossVisitor;

impl<'de> Visitor<'de> for LossVisitor {
    type Value = Loss;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a share such as \"1%\", or { to_bad, to_good, bad, good }")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Loss, E> {
        Percent::parse(text).map(Loss::from).map_err(E::custom)
    }

    fn visit_i64<E: Error>(self, n: i64) -> Result<Loss, E> {
        self.visit_str(&n.to_string())
    }

    fn visit_f64<E: Error>(self, n: f64) -> Result<Loss, E> {
        self.visit_str(&n.to_string())
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Loss, A::Error> {
        BurstLoss::deserialize(MapAccessDeserializer::new(map)).map(Loss::from)
    }
}

struct AlgorithmVisitor;

impl<'de> Visitor<'de> for AlgorithmVisitor {
    type Value = Algorithm;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name such as \"cubic\", or { name = \"cubic\", beta = 0.7 }")
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<Algorithm, E> {
        Ok(Algorithm { choice: name.into(), file: None })
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Algorithm, A::Error> {
        let (mut name, mut parameters, mut file) = (None, BTreeMap::new(), None);
        while let Some(key) = map.next_key::<String>()? {
            match key.as_str() {
                "name" => name = Some(map.next_value()?),
                params::FILE => file = Some(map.next_value()?),
                _ => drop(parameters.insert(key, map.next_value::<ParameterValue>()?.0)),
            }
        }
        let name = name.ok_or_else(|| A::Error::missing_field("name"))?;
        Ok(Algorithm { choice: model::AlgorithmChoice { name, parameters }, file })
    }
}

/// The value of one parameter; `true` and `false` are the words `on` and `off`.
struct ParameterValue(ParamValue);

struct ParameterVisitor;

impl Visitor<'_> for ParameterVisitor {
    type Value = ParameterValue;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number, a word, true or false")
    }

    fn visit_str<E: Error>(self, word: &str) -> Result<ParameterValue, E> {
        Ok(ParameterValue(ParamValue::Choice(word.to_owned())))
    }

    fn visit_f64<E: Error>(self, n: f64) -> Result<ParameterValue, E> {
        Ok(ParameterValue(ParamValue::Number(n)))
    }

    fn visit_i64<E: Error>(self, n: i64) -> Result<ParameterValue, E> {
        self.visit_f64(n as f64)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<ParameterValue, E> {
        self.visit_str(if value { "on" } else { "off" })
    }
}

impl<'de> Deserialize<'de> for Loss {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(LossVisitor)
    }
}

impl<'de> Deserialize<'de> for Jitter {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(JitterVisitor)
    }
}

impl<'de> Deserialize<'de> for Reorder {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ReorderVisitor)
    }
}

impl<'de> Deserialize<'de> for Algorithm {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AlgorithmVisitor)
    }
}

impl<'de> Deserialize<'de> for ParameterValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ParameterVisitor)
    }
}

impl JsonSchema for Loss {
    fn schema_name() -> Cow<'static, str> {
        "loss".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let forms = [generator.subschema_for::<Percent>(), generator.subschema_for::<BurstLoss>()];
        json_schema!({ "anyOf": forms })
    }
}

impl JsonSchema for Jitter {
    fn schema_name() -> Cow<'static, str> {
        "jitter".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let forms = [generator.subschema_for::<Time>(), generator.subschema_for::<NetemJitter>()];
        json_schema!({ "anyOf": forms })
    }
}

impl JsonSchema for Reorder {
    fn schema_name() -> Cow<'static, str> {
        "reorder".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let forms = [generator.subschema_for::<Percent>(), generator.subschema_for::<NetemReorder>()];
        json_schema!({ "anyOf": forms })
    }
}

impl JsonSchema for Algorithm {
    fn schema_name() -> Cow<'static, str> {
        "algorithm".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "anyOf": [
            { "type": "string", "description": "Its name." },
            {
                "type": "object",
                "description": "Its name and its parameters.",
                "properties": { "name": { "type": "string" } },
                "additionalProperties": { "type": ["number", "string", "boolean"] },
            },
        ] })
    }
}
