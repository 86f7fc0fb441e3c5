//! A fixed sample of worlds: CUBIC does itself no harm, and what is known to starve others is found.

use control::{AlgorithmEntry, Constructor, Context, Decision, PathController, PathEvent, Properties, registry};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::LazyLock;
use units::INFINITE_SSTHRESH;
use worlds::{Algorithm, Folder, KINDS, MEASURES, Measure, Outcome, Tally, outcomes};

/// The share of worlds that a harmless algorithm passes: chance fails fewer than one in twenty (docs/evidence/worlds.md).
const LEAST_HARMLESS: f64 = 0.95;
/// Worlds of the fixed sample.
const SAMPLE: Range<u64> = 0..20;

/// CUBIC's two runs, made once for all tests.
static REFERENCES: LazyLock<[BTreeMap<u64, Outcome>; 2]> =
    LazyLock::new(|| Algorithm::references().unwrap().map(|reference| run(&reference)));

fn run(algorithm: &Algorithm) -> BTreeMap<u64, Outcome> {
    outcomes(algorithm, &SAMPLE, None, &mut Folder::default(), None, &mut ()).unwrap()
}

fn tally(label: &str) -> Tally {
    let [cubic, again] = &*REFERENCES;
    Tally::new(label, &run(&Algorithm::new(label, &format!("\"{label}\"")).unwrap()), [cubic, again])
}

#[test]
fn cubic_passes_everything_beside_itself() {
    let tally = tally("cubic");
    assert_eq!((tally.all().judged, tally.all().passed), (20, 20));
    let of = |index: usize| tally.judgements.iter().filter_map(move |judgement| judgement.values[index]);
    assert!(of(0).chain(of(3)).all(|value| value >= 1.0), "{tally:?}");
    assert!(tally.rows().iter().all(|row| row.verdicts[0].judged >= 10), "the sample judges each measure");
}

/// A window that stays, whatever is lost.
#[derive(Debug)]
struct Blast;

impl PathController for Blast {
    fn on_event(&mut self, _: &PathEvent, _: &mut Context<'_>) {}

    fn decision(&self) -> Decision {
        Decision { cwnd: 2000, ssthresh: INFINITE_SSTHRESH, pacing_rate: None }
    }
}

/// It answers no loss, so that any flow that does is pushed out of each queue that does not isolate flows (RFC 2914, section 2).
#[test]
fn a_window_that_no_loss_lowers_is_found_harmful() {
    registry::register(AlgorithmEntry {
        name: "blast",
        aliases: &[],
        title: "a window that stays",
        source: "a test",
        parameters: &[],
        properties: Properties { code_version: Some("1"), ..Properties::DEFAULT },
        constructor: Constructor::PerPathDyn(std::sync::Arc::new(|_| Box::new(Blast))),
    })
    .expect("right");
    let tally = tally("blast");
    let row = |measure| tally.rows().into_iter().find(|row| row.measure == measure).unwrap().verdicts[0];
    let (harm, loss) = (row(Measure::Harm), row(Measure::Loss));
    assert!(harm.share() < LEAST_HARMLESS && loss.share() < LEAST_HARMLESS, "{}", tally.text(3));
    let worst = tally.worst(Measure::Harm, 3);
    assert!(worst.windows(2).all(|pair| pair[0].1 <= pair[1].1) && worst[0].0.worst_rival.is_some(), "{worst:?}");
    let kinds = tally.kinds();
    assert!(kinds.windows(2).all(|pair| pair[0].1.share() <= pair[1].1.share()), "the worst kinds first");
    let judged = |kind: &str| kinds.iter().find(|(name, ..)| *name == kind).map_or(0, |(_, all, _)| all.judged);
    let layouts = KINDS[..4].iter().map(|kind| judged(kind)).sum::<usize>();
    assert_eq!(layouts, 20, "each world has one layout of paths");
    let document = tally.document();
    assert_eq!(document["measures"].as_array().map(Vec::len), Some(MEASURES.len()));
    assert!(tally.text(1).contains(&format!("world {}", worst[0].0.seed)));
}
