//! Colours: one for each algorithm in every table and plot, another shade of it on a dark page.
//!
//! An algorithm's colour is in its registration; other names get one of Okabe and Ito's palette. Colour-blind readers
//! can distinguish the colours of a usual plot; besides, lines differ in dashes and have names.

/// Colour on white and on black.
pub type Colour = [&'static str; 2];

/// Okabe and Ito's palette, for names that have no colour.
const PALETTE: [Colour; 8] = [
    ["#0072b2", "#4ba3db"],
    ["#d55e00", "#f0803c"],
    ["#009e73", "#2bc79b"],
    ["#c2619a", "#e29bc4"],
    ["#3f9fdc", "#7cc8f2"],
    ["#cc8d00", "#f0b733"],
    ["#332288", "#9a8cf0"],
    ["#117733", "#55b36f"],
];

/// Names that are not in the registry: an algorithm of a kernel, and flows without congestion control.
const UNREGISTERED: [(&str, Colour); 2] =
    [("prague", ["#5b3ea8", "#b09af5"]), ("uncontrolled", ["#777777", "#a0a0a0"])];

/// The colours of the first, second and third path.
const PATHS: [Colour; 3] = [["#4a4f59", "#c3c9d3"], ["#9a7b4f", "#c9a877"], ["#7d93a8", "#7f9cb8"]];

fn registered() -> impl Iterator<Item = (&'static control::AlgorithmEntry, Colour)> {
    control::registry::entries().into_iter().filter_map(|entry| Some((entry, entry.properties.colour?)))
}

/// All colours: palette, paths, registry, other names.
fn colours() -> impl Iterator<Item = Colour> {
    let colours = registered().map(|(_, colour)| colour).chain(UNREGISTERED.map(|(_, colour)| colour));
    PALETTE.into_iter().chain(PATHS).chain(colours)
}

/// The index of the colour of path `index`.
pub(crate) fn path(index: usize) -> usize {
    PALETTE.len() + index % PATHS.len()
}

/// The index of the colour of a registered name, if it has one.
pub(crate) fn registered_index(name: &str) -> Option<usize> {
    let has_name = |entry: &control::AlgorithmEntry| entry.name == name || entry.aliases.contains(&name);
    let position = registered().position(|(entry, _)| has_name(entry));
    let unregistered =
        || UNREGISTERED.iter().position(|(known, _)| *known == name).map(|position| registered().count() + position);
    Some(PALETTE.len() + PATHS.len() + position.or_else(unregistered)?)
}

/// The index of the colour of the `index`-th of several names without a colour.
pub(crate) fn palette_index(index: usize) -> usize {
    let unreserved = colours().count() - PATHS.len();
    let position = index % unreserved;
    if position < PALETTE.len() { position } else { position + PATHS.len() }
}

/// The colour of an algorithm; one without a name of its own (UDP) is grey.
pub(crate) fn index(name: &str) -> usize {
    let name = if name.is_empty() || name == "udp" { "uncontrolled" } else { name };
    registered_index(name)
        .unwrap_or_else(|| name.bytes().fold(7, |hash: usize, byte| hash.wrapping_mul(31) ^ usize::from(byte)) % 8)
}

/// The colour of an algorithm or of another name.
#[must_use]
pub fn of(name: &str) -> Colour {
    colours().nth(index(name)).expect("indices are of colours")
}

/// The colour of the path `index`.
#[must_use]
pub fn of_path(index: usize) -> Colour {
    PATHS[index % PATHS.len()]
}

/// The colours of `names` that stand side by side: those of algorithms are their own, any others differ.
#[must_use]
pub fn of_several(names: &[&str]) -> Vec<Colour> {
    let mut others = 0..;
    let mut index = |name: &&str| registered_index(name).unwrap_or_else(|| palette_index(others.next().unwrap_or(0)));
    names.iter().map(|name| colours().nth(index(name)).expect("indices are of colours")).collect()
}

/// The colours as custom properties `--c0`, `--c1`, ... for both themes.
pub(crate) fn css() -> String {
    let list = |theme: usize| {
        let properties = colours().enumerate().map(|(index, colour)| format!("--c{index}:{};", colour[theme]));
        properties.collect::<String>()
    };
    let (light, dark) = (list(0), list(1));
    format!(":root{{{light}}}@media screen and (prefers-color-scheme:dark){{:root{{{dark}}}}}")
}
