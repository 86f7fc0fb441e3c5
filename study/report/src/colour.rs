//! Colours: one for each algorithm in every table and plot, another shade of it on a dark page.
//!
//! Okabe and Ito's palette for the algorithms met most often, then shades of Paul Tol's; all can be told apart by
//! colour-blind readers within a plot of usual size. Colour is never alone: lines differ in dashes and have names.

/// Name, colour on white, colour on black.
type Colour = (&'static str, &'static str, &'static str);

/// The first eight also serve names that are not here.
const COLOURS: [Colour; 28] = [
    ("cubic", "#0072b2", "#4ba3db"),
    ("bbr", "#d55e00", "#f0803c"),
    ("vegas", "#009e73", "#2bc79b"),
    ("illinois", "#c2619a", "#e29bc4"),
    ("bic", "#3f9fdc", "#7cc8f2"),
    ("highspeed", "#cc8d00", "#f0b733"),
    ("reno", "#332288", "#9a8cf0"),
    ("westwood", "#117733", "#55b36f"),
    ("hybla", "#882255", "#d0679b"),
    ("scalable", "#86862b", "#bdbd55"),
    ("veno", "#2f9486", "#66ccbb"),
    ("htcp", "#aa4499", "#d27bc3"),
    ("yeah", "#661100", "#c46a55"),
    ("lp", "#4f7fb3", "#8fb5de"),
    ("dctcp", "#96700b", "#ddb040"),
    ("cdg", "#6b5a00", "#b7a338"),
    ("nv", "#3a6b1f", "#8ac266"),
    ("bbr3", "#a33c00", "#ff9a63"),
    ("prague", "#5b3ea8", "#b09af5"),
    ("lia", "#4477aa", "#7fa9d6"),
    ("olia", "#d4475a", "#ff8c9a"),
    ("balia", "#228833", "#5cbf6e"),
    ("wvegas", "#aa3377", "#d66ca5"),
    ("hstcp", "#cc8d00", "#f0b733"),
    ("uncontrolled", "#777777", "#a0a0a0"),
    ("path", "#4a4f59", "#c3c9d3"),
    ("second path", "#9a7b4f", "#c9a877"),
    ("third path", "#7d93a8", "#7f9cb8"),
];

/// How many colours there are for paths: the last ones.
pub(crate) const PATHS: usize = 3;

/// The colour of the path `index`.
pub(crate) fn path(index: usize) -> usize {
    COLOURS.len() - PATHS + index % PATHS
}

/// The colour that is kept for this name, if there is one.
pub(crate) fn known(name: &str) -> Option<usize> {
    COLOURS.iter().position(|(other, ..)| *other == name)
}

/// Colours for what has none of its own, one after the other.
pub(crate) fn in_turn(index: usize) -> usize {
    index % (COLOURS.len() - PATHS)
}

/// The colour of an algorithm; one without a name of its own (UDP) is grey.
pub(crate) fn index(name: &str) -> usize {
    let name = if name.is_empty() || name == "udp" { "uncontrolled" } else { name };
    known(name)
        .unwrap_or_else(|| name.bytes().fold(7, |hash: usize, byte| hash.wrapping_mul(31) ^ usize::from(byte)) % 8)
}

/// The colours as custom properties `--c0`, `--c1`, ... for both themes.
pub(crate) fn css() -> String {
    let list = |pick: fn(&Colour) -> &'static str| {
        let each = COLOURS.iter().enumerate().map(|(index, colour)| format!("--c{index}:{};", pick(colour)));
        each.collect::<String>()
    };
    let (light, dark) = (list(|colour| colour.1), list(|colour| colour.2));
    format!(":root{{{light}}}@media screen and (prefers-color-scheme:dark){{:root{{{dark}}}}}")
}
