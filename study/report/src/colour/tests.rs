//! The palette for every eye: CIEDE2000 differences under simulated colour vision deficiencies, and contrasts.

use super::*;

type Vector = [f64; 3];
type Matrix = [Vector; 3];

/// Machado, Oliveira and Fernandes (2009), "A Physiologically-based Model for Simulation of Color Vision Deficiency",
/// severity 1: for linear RGB.
const VISIONS: [(&str, Matrix); 4] = [
    ("normal", [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]),
    (
        "protanopia",
        [[0.152_286, 1.052_583, -0.204_868], [0.114_503, 0.786_281, 0.099_216], [-0.003_882, -0.048_116, 1.051_998]],
    ),
    (
        "deuteranopia",
        [[0.367_322, 0.860_646, -0.227_968], [0.280_085, 0.672_501, 0.047_413], [-0.011_820, 0.042_940, 0.968_881]],
    ),
    (
        "tritanopia",
        [[1.255_528, -0.076_749, -0.178_779], [-0.078_411, 0.930_809, 0.147_602], [0.004_733, 0.691_367, 0.303_900]],
    ),
];

/// Linear sRGB to CIE XYZ (IEC 61966-2-1, D65).
const XYZ: Matrix = [
    [0.412_456_4, 0.357_576_1, 0.180_437_5],
    [0.212_672_9, 0.715_152_2, 0.072_175_0],
    [0.019_333_9, 0.119_192_0, 0.950_304_1],
];

fn times(matrix: &Matrix, vector: Vector) -> Vector {
    [0, 1, 2].map(|row| (0..3).map(|column| matrix[row][column] * vector[column]).sum())
}

/// Red, green and blue of `#rrggbb`, 0 to 255.
fn channels(colour: &str) -> [i32; 3] {
    [1, 3, 5]
        .map(|start| colour.get(start..start + 2).and_then(|digits| i32::from_str_radix(digits, 16).ok()).unwrap_or(0))
}

fn linear(colour: &str) -> Vector {
    channels(colour).map(|channel| {
        let share = f64::from(channel) / 255.0;
        if share <= 0.040_45 { share / 12.92 } else { ((share + 0.055) / 1.055).powf(2.4) }
    })
}

/// CIE L*a*b* of linear RGB.
fn lab(rgb: Vector) -> Vector {
    let xyz = times(&XYZ, rgb.map(|channel| channel.clamp(0.0, 1.0)));
    let white = [0.950_47, 1.0, 1.088_83];
    let f = [0, 1, 2].map(|index| {
        let ratio: f64 = xyz[index] / white[index];
        if ratio > 216.0 / 24_389.0 { ratio.cbrt() } else { (24_389.0 / 27.0 * ratio + 16.0) / 116.0 }
    });
    [116.0 * f[1] - 16.0, 500.0 * (f[0] - f[1]), 200.0 * (f[1] - f[2])]
}

/// CIEDE2000 (Sharma, Wu and Dalal 2005).
fn difference([l1, a1, b1]: Vector, [l2, a2, b2]: Vector) -> f64 {
    let shrink = |chroma: f64| (chroma.powi(7) / (chroma.powi(7) + 25_f64.powi(7))).sqrt();
    let mean_chroma = f64::midpoint(a1.hypot(b1), a2.hypot(b2));
    let scale = 1.0 + 0.5 * (1.0 - shrink(mean_chroma));
    let [(c1, h1), (c2, h2)] = [(a1 * scale, b1), (a2 * scale, b2)]
        .map(|(a, b): (f64, f64)| (a.hypot(b), b.atan2(a).to_degrees().rem_euclid(360.0)));
    let is_grey = c1 * c2 == 0.0;
    let turn = match h2 - h1 {
        _ if is_grey => 0.0,
        turn if turn > 180.0 => turn - 360.0,
        turn if turn < -180.0 => turn + 360.0,
        turn => turn,
    };
    let mean_hue = match h1 + h2 {
        sum if is_grey => sum,
        sum if (h1 - h2).abs() <= 180.0 => sum / 2.0,
        sum if sum < 360.0 => (sum + 360.0) / 2.0,
        sum => (sum - 360.0) / 2.0,
    };
    let cosine = |degrees: f64| degrees.to_radians().cos();
    let (dl, dc) = (l2 - l1, c2 - c1);
    let dh = 2.0 * (c1 * c2).sqrt() * (turn.to_radians() / 2.0).sin();
    let (l, c) = (f64::midpoint(l1, l2), f64::midpoint(c1, c2));
    let t = 1.0 - 0.17 * cosine(mean_hue - 30.0) + 0.24 * cosine(2.0 * mean_hue) + 0.32 * cosine(3.0 * mean_hue + 6.0)
        - 0.2 * cosine(4.0 * mean_hue - 63.0);
    let lightness = 1.0 + 0.015 * (l - 50.0).powi(2) / (20.0 + (l - 50.0).powi(2)).sqrt();
    let (chroma, hue) = (1.0 + 0.045 * c, 1.0 + 0.015 * c * t);
    let angle = 60.0 * (-((mean_hue - 275.0) / 25.0).powi(2)).exp();
    let rotation = -angle.to_radians().sin() * 2.0 * shrink(c);
    let [l, c, h] = [dl / lightness, dc / chroma, dh / hue];
    (l * l + c * c + h * h + rotation * c * h).sqrt()
}

#[test]
fn the_difference_is_that_of_the_published_test_data() {
    // Sharma, Wu and Dalal (2005), table 1, pairs 1, 7, 13, 17 and 33.
    for (first, second, expected) in [
        ([50.0, 2.6772, -79.7751], [50.0, 0.0, -82.7485], 2.0425),
        ([50.0, 0.0, 0.0], [50.0, -1.0, 2.0], 2.3669),
        ([50.0, -0.001, 2.49], [50.0, 0.0009, -2.49], 4.8045),
        ([50.0, 2.5, 0.0], [73.0, 25.0, -18.0], 27.1492),
        ([6.7747, -0.2908, -2.4247], [5.8714, -0.0985, -2.2286], 0.6377),
    ] {
        assert!((difference(first, second) - expected).abs() < 1e-4, "{first:?}: {}", difference(first, second));
    }
}

#[test]
fn every_eye_tells_the_colours_apart() {
    for theme in [0, 1] {
        for (vision, matrix) in VISIONS {
            let seen = PALETTE.map(|colour| lab(times(&matrix, linear(colour[theme]))));
            for (index, first) in seen.iter().enumerate() {
                for (other, second) in seen.iter().enumerate().skip(index + 1) {
                    let difference = difference(*first, *second);
                    assert!(
                        difference >= 13.0,
                        "{vision}, theme {theme}: {index} and {other} differ by {difference:.1}"
                    );
                }
            }
        }
    }
}

#[test]
fn every_colour_has_a_contrast_of_three_to_the_page() {
    let luminance = |colour: &str| times(&XYZ, linear(colour))[1];
    for (theme, page) in ["#ffffff", "#14171b"].into_iter().enumerate() {
        for colour in PALETTE {
            let [dark, bright] = {
                let pair = [luminance(colour[theme]), luminance(page)];
                [pair[0].min(pair[1]), pair[0].max(pair[1])]
            };
            let contrast = (bright + 0.05) / (dark + 0.05);
            assert!(contrast >= 3.0, "{} on {page}: {contrast:.2}", colour[theme]);
        }
    }
}

#[test]
fn no_two_slots_look_the_same() {
    for (index, one) in (0..SLOTS).map(look).enumerate() {
        for other in (0..index).map(look) {
            assert!((one.colour, one.dashes) != (other.colour, other.dashes), "slot {index}: {one:?}");
            assert!((one.colour, one.marker) != (other.colour, other.marker), "slot {index}: {one:?}");
        }
    }
}

#[test]
fn every_built_in_algorithm_stands_in_the_table_once_and_looks_the_same_alone_and_among_others() {
    for name in control::registry::entries().into_iter().map(|entry| entry.name) {
        assert_eq!(ALGORITHMS.iter().filter(|algorithm| **algorithm == name).count(), 1, "{name}");
    }
    let looks = of_several(&ALGORITHMS);
    for (index, (name, shown)) in ALGORITHMS.iter().zip(&looks).enumerate() {
        assert!(!looks[..index].contains(shown), "{name}");
        assert_eq!(of_several(&[name]), [*shown], "{name}");
        assert_eq!(of_several(&["20ms", name, "bbr44"])[1], *shown, "{name}");
    }
    assert_eq!(of_several(&["hstcp"]), of_several(&["highspeed"]), "papers' names are the same algorithms");
}

#[test]
fn another_algorithm_has_its_look_by_its_name() {
    let slots = Slots::of(["my-aimd"]);
    let slot = slots.get("my-aimd").unwrap();
    assert!(slot >= ALGORITHMS.len(), "none of a built-in algorithm");
    assert_eq!(Slots::of(["cubic", "my-aimd", "bbr"]).get("my-aimd"), Some(slot));
    let many: Vec<String> = (0..SLOTS - ALGORITHMS.len()).map(|index| format!("plug-in-{index}")).collect();
    let slots = Slots::of(many.iter().map(String::as_str));
    let of_many: Vec<usize> = many.iter().filter_map(|name| slots.get(name)).collect();
    assert_eq!(unique(of_many.iter().copied()).len(), many.len(), "as many as there are slots differ");
}

#[test]
fn what_is_no_algorithm_has_the_colours_in_order_and_leaves_algorithms_theirs() {
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    let slots = Slots::of([]);
    assert_eq!(slots.of_several(&names(&["10ms", "20ms", "40ms"])), [0, 1, 2]);
    assert_eq!(slots.of_several(&names(&["other", "cubic", "bbr"])), [2, 0, 1]);
    let twelve: Vec<String> = (0..12).map(|index| index.to_string()).collect();
    assert_eq!(unique(slots.of_several(&twelve).into_iter()).len(), 12);
    assert_eq!(assign(&[Some(0), Some(0), None]), [0, COLOURS, 1], "two of one algorithm share its colour");
}

/// All scenarios that are shipped: what stands on one figure.
#[test]
fn on_no_figure_of_a_shipped_scenario_two_look_the_same() {
    let mut figures = 0;
    for built_in in scenario::built_in() {
        let Ok(scenario) = built_in.load(&scenario::Overrides::default()) else { continue };
        let keys = unique(scenario.cells.iter().flat_map(|cell| cell.parameters.iter().map(|(key, _)| key.clone())));
        for key in keys {
            let values = scenario.cells.iter().flat_map(|cell| cell.parameters.iter().filter(|(own, _)| *own == key));
            let names = unique(values.map(|(_, value)| value.clone()));
            let looks = of_several(&names.iter().map(String::as_str).collect::<Vec<_>>());
            for (index, shown) in looks.iter().enumerate() {
                assert!(!looks[..index].contains(shown), "{} {key}: {names:?}", built_in.name());
            }
            figures += usize::from(key.ends_with("congestion"));
        }
    }
    assert!(figures > 20, "{figures}");
}
