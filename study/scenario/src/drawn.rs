//! A quantity that may be drawn anew each time: `size = "20kB"`, or
//! `size = { mean = "20kB", distribution = "pareto", shape = 1.5 }`.

use crate::model::Draw;
use parse::{Quantity, Text};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{DeserializeOwned, Deserializer, Error, MapAccess, Visitor};
use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

/// A quantity, or its mean and how it is distributed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Drawn<Q> {
    pub(crate) mean: Q,
    distribution: Distribution,
    shape: f64,
}

/// How a quantity is distributed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "distribution")]
enum Distribution {
    /// Always its mean.
    Fixed,
    /// Exponential.
    Exponential,
    /// Pareto, with a heavy tail.
    Pareto,
}

/// The long form.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Written<Q> {
    /// The mean.
    mean: Q,
    /// How it is distributed around its mean.
    distribution: Distribution,
    /// Pareto: exponent of the tail, more than 1; below 2 the variance is infinite.
    shape: Option<f64>,
}

impl<Q> Written<Q> {
    fn checked(self) -> Result<Drawn<Q>, String> {
        let Self { mean, distribution, shape } = self;
        let shape = match (distribution, shape) {
            (Distribution::Pareto, Some(shape)) if shape > 1.0 && shape.is_finite() => shape,
            (Distribution::Pareto, Some(shape)) => {
                return Err(format!(
                    "with a shape of {shape} there is no mean\nmore than 1, for example `shape = 1.5`"
                ));
            }
            (Distribution::Pareto, None) => {
                return Err("a pareto distribution needs `shape`\nmore than 1, for example `shape = 1.5`".to_owned());
            }
            (_, Some(_)) => return Err("only a pareto distribution has a `shape`".to_owned()),
            (_, None) => 0.0,
        };
        Ok(Drawn { mean, distribution, shape })
    }
}

impl<Q> Drawn<Q> {
    /// For the model, in the unit of `number`.
    pub(crate) fn draw(&self, number: impl Fn(&Q) -> u64) -> Draw {
        let (mean, shape) = (number(&self.mean) as f64, self.shape);
        match self.distribution {
            Distribution::Fixed => Draw::Fixed(mean),
            Distribution::Exponential => Draw::Exponential(mean),
            // The mean is least * shape / (shape - 1).
            Distribution::Pareto => Draw::Pareto { least: mean * (shape - 1.0) / shape, shape },
        }
    }
}

struct DrawnVisitor<Q>(PhantomData<Q>);

impl<'de, Q: Quantity + DeserializeOwned> Visitor<'de> for DrawnVisitor<Q> {
    type Value = Drawn<Q>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, or {{ mean, distribution }}", Q::WHAT)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Drawn<Q>, E> {
        let mean = Text(PhantomData).visit_str(text)?;
        Ok(Drawn { mean, distribution: Distribution::Fixed, shape: 0.0 })
    }

    fn visit_i64<E: Error>(self, n: i64) -> Result<Drawn<Q>, E> {
        self.visit_str(&n.to_string())
    }

    fn visit_f64<E: Error>(self, n: f64) -> Result<Drawn<Q>, E> {
        self.visit_str(&n.to_string())
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Drawn<Q>, A::Error> {
        Written::deserialize(MapAccessDeserializer::new(map))?.checked().map_err(A::Error::custom)
    }
}

impl<'de, Q: Quantity + DeserializeOwned> Deserialize<'de> for Drawn<Q> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(DrawnVisitor(PhantomData))
    }
}

impl<Q: JsonSchema> JsonSchema for Drawn<Q> {
    fn schema_name() -> Cow<'static, str> {
        format!("drawn-{}", Q::schema_name()).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let forms = [generator.subschema_for::<Q>(), Written::<Q>::json_schema(generator)];
        json_schema!({ "anyOf": forms })
    }
}
