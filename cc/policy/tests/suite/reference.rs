//! The page of policies has the facts of every feature and action.

use ropewalk_policy::{Action, Feature};

const PAGE: &str = include_str!("../../../../docs/reference/policies.md");

fn bound(value: f32) -> String {
    match value.is_finite() {
        true => format!("{value}"),
        false => "none".to_owned(),
    }
}

#[test]
fn the_page_has_a_row_for_each_feature_with_unit_range_and_description() {
    for feature in Feature::all() {
        let [low, high] = feature.range().map(bound);
        let row = format!("| `{}` | {} | {low} | {high} | {} |", feature.name(), feature.unit(), feature.description());
        assert!(PAGE.lines().any(|line| line == row.replace("|  |", "| |")), "the page lacks\n{row}");
    }
}

#[test]
fn the_page_has_a_row_for_each_action_with_range_effect_and_source() {
    for action in Action::ENTRIES {
        let defaults: Vec<String> = action.parameters.iter().map(|(name, value)| format!("{name} = {value}")).collect();
        let row = format!(
            "| `{}` | {} | {} | {} | {} |",
            action.name,
            defaults.join(", "),
            action.range,
            action.effect,
            action.source
        );
        assert!(PAGE.lines().any(|line| line == row), "the page lacks\n{row}");
    }
}
