//! A distribution in a few numbers.

use crate::columns::visit_part;
use crate::{Column, ColumnVisitor};
use serde::{Deserialize, Serialize};

/// A distribution in a few numbers; all zero if there were no samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// Mean.
    pub mean: f64,
    /// Median.
    pub p50: f64,
    /// 95th percentile.
    pub p95: f64,
    /// 99th percentile.
    pub p99: f64,
    /// Minimum.
    pub min: f64,
    /// Maximum.
    pub max: f64,
}

impl Column for Summary {
    fn visit(&mut self, name: &str, visitor: &mut dyn ColumnVisitor) {
        let Self { mean, p50, p95, p99, min, max } = self;
        for (statistic, value) in [("mean", mean), ("p50", p50), ("p95", p95), ("p99", p99), ("min", min), ("max", max)]
        {
            value.visit(&format!("{name}.{statistic}"), visitor);
        }
    }
}

impl Column for Option<Summary> {
    fn visit(&mut self, name: &str, visitor: &mut dyn ColumnVisitor) {
        visit_part(self, visitor, |summary, visitor| summary.visit(name, visitor));
    }
}
