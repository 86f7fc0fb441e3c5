//! The look of lines and bars: seven colours that every eye can tell apart, and dashes.
//!
//! Between any two colours of the palette the CIEDE2000 difference is 13 or more, for normal vision and with each of the
//! three dichromacies as Machado, Oliveira and Fernandes (2009) simulate them, on a light and on a dark page; and each
//! has a contrast of 3 to the page (WCAG 2.2, 1.4.11). No two of the first 49 slots have the same colour and dashes.

use std::collections::BTreeMap;

/// Colour on white and on black.
pub type Colour = [&'static str; 2];

/// The palette.
const PALETTE: [Colour; 7] = [
    ["#1963c1", "#6792d5"],
    ["#b24215", "#f0803c"],
    ["#085758", "#34df92"],
    ["#d76082", "#dfa0b9"],
    ["#4e0991", "#6c5ecd"],
    ["#939915", "#ffe645"],
    ["#4898dc", "#c4f0ff"],
];

/// The number of colours.
pub(crate) const COLOURS: usize = PALETTE.len();

/// The dash patterns of lines, in thirds of a point; the first is solid.
pub(crate) const DASHES: [&str; 7] = ["", "6 2", "2 2", "8 2 2 2", "12 3", "5 2 1 2 1 2", "1 3"];

/// The colour of a slot.
pub(crate) fn colour(slot: usize) -> usize {
    slot % COLOURS
}

/// The dash pattern of a slot.
pub(crate) fn dash(slot: usize) -> usize {
    (slot + slot / COLOURS) % DASHES.len()
}

/// Algorithms by name, each with the slot that it has throughout a report.
#[derive(Clone, Debug, Default)]
pub(crate) struct Slots(BTreeMap<String, usize>);

impl Slots {
    /// Of these algorithms: each has the slot that its registered colour is nearest to, or the next one that is free.
    pub(crate) fn of<'n>(names: impl IntoIterator<Item = &'n str>) -> Self {
        let mut unique: Vec<String> = Vec::new();
        for name in names.into_iter().map(canonical) {
            if !unique.contains(&name) {
                unique.push(name);
            }
        }
        let slots = assign(&unique.iter().map(String::as_str).collect::<Vec<_>>());
        Self(unique.into_iter().zip(slots).collect())
    }

    /// The slot of an algorithm; none of any other name.
    pub(crate) fn get(&self, name: &str) -> Option<usize> {
        self.0.get(&canonical(name)).copied()
    }

    /// The slots of names that stand side by side: those of algorithms if all are that, otherwise one after the other.
    pub(crate) fn of_several(&self, names: &[String]) -> Vec<usize> {
        let slots: Option<Vec<usize>> = names.iter().map(|name| self.get(name)).collect();
        slots.filter(|slots| are_unique(slots)).unwrap_or_else(|| (0..names.len()).collect())
    }
}

fn are_unique(slots: &[usize]) -> bool {
    slots.iter().enumerate().all(|(index, slot)| !slots[..index].contains(slot))
}

/// The name in the registry; an algorithm without a name (UDP) is "uncontrolled".
fn canonical(name: &str) -> String {
    match name {
        "" | "udp" => "uncontrolled".to_owned(),
        _ => control::registry::find(name).map_or(name, |entry| entry.name).to_owned(),
    }
}

/// A slot for each name, none twice: that nearest to the registered colour, or else the next free one.
pub(crate) fn assign(names: &[&str]) -> Vec<usize> {
    let mut taken: Vec<usize> = Vec::new();
    for name in names {
        let round = taken.len() / COLOURS * COLOURS;
        let preferred = preferred(name).map(|slot| round + slot).filter(|slot| !taken.contains(slot));
        let free = (round..).find(|slot| !taken.contains(slot)).unwrap_or_default();
        taken.push(preferred.unwrap_or(free));
    }
    taken
}

/// The palette's colour nearest to that which an algorithm is registered with.
fn preferred(name: &str) -> Option<usize> {
    let [light, _] = control::registry::find(name)?.properties.colour?;
    let distance = |colour: &Colour| {
        let pairs = channels(colour[0]).into_iter().zip(channels(light));
        pairs.map(|(one, other)| (one - other).pow(2)).sum::<i32>()
    };
    PALETTE.iter().enumerate().min_by_key(|(_, colour)| distance(colour)).map(|(index, _)| index)
}

/// Red, green and blue of `#rrggbb`, 0 to 255.
pub(crate) fn channels(colour: &str) -> [i32; 3] {
    [1, 3, 5]
        .map(|start| colour.get(start..start + 2).and_then(|digits| i32::from_str_radix(digits, 16).ok()).unwrap_or(0))
}

/// The palette's colours on white.
pub(crate) fn light() -> [&'static str; COLOURS] {
    PALETTE.map(|colour| colour[0])
}

/// The colour of the path `index`, which differs from those of the first paths and the first algorithms.
#[must_use]
pub fn of_path(index: usize) -> Colour {
    PALETTE[COLOURS - 1 - index % COLOURS]
}

/// The colours of `names` that stand side by side.
#[must_use]
pub fn of_several(names: &[&str]) -> Vec<Colour> {
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let slots = Slots::of(names.iter().map(String::as_str)).of_several(&names);
    slots.into_iter().map(|slot| PALETTE[colour(slot)]).collect()
}

/// The colours as custom properties `--c0`, `--c1`, ... for both themes.
pub(crate) fn css() -> String {
    let list = |theme: usize| {
        let properties = PALETTE.iter().enumerate().map(|(index, colour)| format!("--c{index}:{};", colour[theme]));
        properties.collect::<String>()
    };
    let (light, dark) = (list(0), list(1));
    format!(":root{{{light}}}@media screen and (prefers-color-scheme:dark){{:root{{{dark}}}}}")
}

#[cfg(test)]
mod tests;
