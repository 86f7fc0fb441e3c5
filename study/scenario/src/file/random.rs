//! A quantity that may be random, drawn each time it is used: `size = "20kB"`, or
//! `size = { mean = "20kB", distribution = "pareto", shape = 1.5 }`.

use crate::model;
use parse::{Quantity, QuantityVisitor};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{DeserializeOwned, Deserializer, Error, MapAccess, Visitor};
use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

/// A quantity, or its mean and how it is distributed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Random<Q> {
    pub(crate) mean: Q,
    distribution: Distribution,
    shape: f64,
}

/// The distribution of a quantity.
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
    /// The distribution.
    distribution: Distribution,
    /// Pareto (required): exponent of the tail, more than 1. Below 2 the variance is infinite.
    shape: Option<f64>,
}

impl<Q> Written<Q> {
    fn checked(self) -> Result<Random<Q>, String> {
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
        Ok(Random { mean, distribution, shape })
    }
}

impl<Q> Random<Q> {
    /// For the model, in the unit of `number`.
    pub(crate) fn distribution(&self, number: impl Fn(&Q) -> u64) -> model::Distribution {
        let (mean, shape) = (number(&self.mean) as f64, self.shape);
        match self.distribution {
            Distribution::Fixed => model::Distribution::Fixed(mean),
            Distribution::Exponential => model::Distribution::Exponential(mean),
            // The mean is min * shape / (shape - 1).
            Distribution::Pareto => model::Distribution::Pareto { min: mean * (shape - 1.0) / shape, shape },
        }
    }
}

struct RandomVisitor<Q>(PhantomData<Q>);

impl<'de, Q: Quantity + DeserializeOwned> Visitor<'de> for RandomVisitor<Q> {
    type Value = Random<Q>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, or {{ mean, distribution }}", Q::DESCRIPTION)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Random<Q>, E> {
        let mean = QuantityVisitor(PhantomData).visit_str(text)?;
        Ok(Random { mean, distribution: Distribution::Fixed, shape: 0.0 })
    }

    fn visit_i64<E: Error>(self, n: i64) -> Result<Random<Q>, E> {
        self.visit_str(&n.to_string())
    }

    fn visit_f64<E: Error>(self, n: f64) -> Result<Random<Q>, E> {
        self.visit_str(&n.to_string())
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Random<Q>, A::Error> {
        Written::deserialize(MapAccessDeserializer::new(map))?.checked().map_err(A::Error::custom)
    }
}

impl<'de, Q: Quantity + DeserializeOwned> Deserialize<'de> for Random<Q> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(RandomVisitor(PhantomData))
    }
}

impl<Q: JsonSchema> JsonSchema for Random<Q> {
    fn schema_name() -> Cow<'static, str> {
        format!("random-{}", Q::schema_name()).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let forms = [generator.subschema_for::<Q>(), Written::<Q>::json_schema(generator)];
        json_schema!({ "anyOf": forms })
    }
}
