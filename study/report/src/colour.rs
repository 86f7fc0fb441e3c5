//! The look of lines, points and bars: seven colours that every eye can tell apart, dashes and markers. An algorithm has the
//! same look in every report, page, file and Python figure.
//!
//! Between any two colours of the palette the CIEDE2000 difference is 13 or more, for normal vision and with each of the
//! three dichromacies as Machado, Oliveira and Fernandes (2009) simulate them, on a light and on a dark page; and each
//! has a contrast of 3 to the page (WCAG 2.2, 1.4.11). No two of the first 49 slots have the same colour and dashes.

use crate::grid::unique;
use std::collections::BTreeMap;
use strings::fnv1a;

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

/// The names of the markers of points, as matplotlib calls them.
pub(crate) const MARKERS: [&str; 7] = ["o", "s", "^", "D", "v", "P", "X"];

/// The built-in algorithms: the place in the list is the slot. Those that studies compare often have a colour each.
const ALGORITHMS: [&str; 38] = [
    "cubic",
    "bbr",
    "vegas",
    "olia",
    "reno",
    "lia",
    "balia",
    "hybla",
    "illinois",
    "htcp",
    "veno",
    "scalable",
    "westwood",
    "highspeed",
    "bic",
    "bbr3",
    "wvegas",
    "dctcp",
    "yeah",
    "uncontrolled",
    "prague",
    "copa",
    "bbr3-draft",
    "cdg",
    "fully-coupled",
    "compound",
    "ewtcp",
    "semicoupled",
    "discern",
    "coupled-bbr",
    "c-mpbbr",
    "bbr-path",
    "policy",
    "nv",
    "lp",
    "ledbat-plus-plus",
    "dmctcp",
    "elastic",
];

/// The number of slots, no two of which have the same colour and dashes, or the same colour and marker.
const SLOTS: usize = COLOURS * DASHES.len();

/// The colour of a slot.
pub(crate) fn colour(slot: usize) -> usize {
    slot % COLOURS
}

/// The dash pattern of a slot, and its marker.
pub(crate) fn dash(slot: usize) -> usize {
    (slot + slot / COLOURS) % DASHES.len()
}

/// Algorithms by name, each with its slot.
#[derive(Clone, Debug, Default)]
pub(crate) struct Slots(BTreeMap<String, usize>);

impl Slots {
    /// Of these algorithms and all that are registered. One that is not built in has a slot by its name.
    pub(crate) fn of<'n>(names: impl IntoIterator<Item = &'n str>) -> Self {
        let known = ALGORITHMS.into_iter().chain(control::registry::names()).map(str::to_owned);
        let names = unique(known.chain(names.into_iter().map(str::to_owned)).map(|name| canonical(&name)));
        let mut slots = BTreeMap::new();
        for name in names {
            let slot = free_slot(own_slot(&name), &slots.values().copied().collect::<Vec<_>>());
            slots.insert(name, slot);
        }
        Self(slots)
    }

    /// The slot of an algorithm; none of any other name.
    pub(crate) fn get(&self, name: &str) -> Option<usize> {
        self.0.get(&canonical(name)).copied()
    }

    /// The slots of names that stand side by side, none twice: algorithms have their own, others the first ones that are
    /// free.
    pub(crate) fn of_several(&self, names: &[String]) -> Vec<usize> {
        let own: Vec<Option<usize>> = names.iter().map(|name| self.get(name)).collect();
        assign(&own)
    }
}

/// The name in the registry; an algorithm without a name (UDP) is "uncontrolled".
fn canonical(name: &str) -> String {
    match name {
        "" | "udp" => "uncontrolled".to_owned(),
        _ => control::registry::find(name).map_or(name, |entry| entry.name).to_owned(),
    }
}

/// The slot of an algorithm by its name: that of the table, or one of those which the table leaves free.
fn own_slot(name: &str) -> usize {
    let by_name = || ALGORITHMS.len() + (fnv1a(name.bytes()) % (SLOTS - ALGORITHMS.len()) as u64) as usize;
    ALGORITHMS.iter().position(|algorithm| *algorithm == name).unwrap_or_else(by_name)
}

/// The slot `own` if it is free; otherwise one of the same colour, or else any.
fn free_slot(own: usize, taken: &[usize]) -> usize {
    let same_colour = (0..DASHES.len()).map(|round| (own + round * COLOURS) % SLOTS);
    same_colour.chain(0..SLOTS).find(|slot| !taken.contains(slot)).unwrap_or(own)
}

/// A slot for each series, none twice as far as there are slots: its own, or of series without one the first that is free, of a
/// colour that nothing has if there is one.
pub(crate) fn assign(own: &[Option<usize>]) -> Vec<usize> {
    let mut taken: Vec<usize> = Vec::new();
    let mut slots = vec![0; own.len()];
    let with_own = own.iter().enumerate().filter_map(|(index, slot)| Some((index, (*slot)?)));
    for (index, own) in with_own {
        slots[index] = free_slot(own, &taken);
        taken.push(slots[index]);
    }
    for (index, _) in own.iter().enumerate().filter(|(_, own)| own.is_none()) {
        let has_new_colour = |slot: &usize| !taken.iter().any(|taken| colour(*taken) == colour(*slot));
        let of_new_colour = (0..COLOURS).find(has_new_colour);
        slots[index] = of_new_colour.unwrap_or_else(|| free_slot(index % SLOTS, &taken));
        taken.push(slots[index]);
    }
    slots
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

/// How a series looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Look {
    /// The colour of its line, marker or bar.
    pub colour: Colour,
    /// The dash pattern in thirds of a point: lengths of dashes and gaps; empty if solid.
    pub dashes: &'static str,
    /// The marker of its points, as matplotlib calls it.
    pub marker: &'static str,
}

/// The looks of `names` that stand side by side: algorithms have their own.
#[must_use]
pub fn of_several(names: &[&str]) -> Vec<Look> {
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let slots = Slots::of([]).of_several(&names);
    slots.into_iter().map(look).collect()
}

fn look(slot: usize) -> Look {
    Look { colour: PALETTE[colour(slot)], dashes: DASHES[dash(slot)], marker: MARKERS[dash(slot)] }
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
