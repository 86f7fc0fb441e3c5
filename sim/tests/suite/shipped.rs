//! Shipped scenarios with drawn keys: each seed takes a case of one of them, and draws rates, delays, losses, queues and
//! hosts. Every run checks what holds in every run (`sim/src/invariants.rs`); longer traces change nothing.

use crate::common::{PrintOnPanic, run_twice};
use link::{LossModel, PipeConfig, QueueLimit};
use scenario::model::{Experiment, FlowKind};
use scenario::{Overrides, load};
use std::path::{Path, PathBuf};
use units::{Rate, RngStream, Span};

const SAMPLE: u64 = 60;
/// Duration of a run; shorter where there are many flows.
const DURATION: Span = Span::from_millis(1500);
const MAX_RATE: Rate = Rate::from_mbit(500);

/// The shipped scenarios, in order of their names, but for those with policies, which the program registers.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).expect("it is shipped").map(|entry| entry.expect("it is readable").path());
    let (folders, files): (Vec<_>, Vec<_>) = entries.partition(|path| path.is_dir());
    let own = files.into_iter().filter(|path| path.extension().is_some_and(|extension| extension == "toml"));
    let mut all: Vec<PathBuf> = own.chain(folders.iter().flat_map(|folder| self::files(folder))).collect();
    all.retain(|path| !path.to_string_lossy().contains("polic"));
    all.sort();
    all
}

#[test]
fn shipped_scenarios_with_drawn_keys_keep_every_invariant() {
    let files = files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../scenarios"));
    for seed in testing::campaign(SAMPLE).range() {
        let file = &files[seed as usize % files.len()];
        let mut rng = RngStream::named(seed, "shipped");
        let mut cells = load(file, &Overrides::default()).unwrap_or_else(|error| panic!("{error}")).cells;
        let mut experiment = cells.swap_remove(rng.below(cells.len() as u64) as usize).experiment;
        draw_keys(&mut experiment, &mut rng);
        println!("seed {seed}: {}", file.display());
        let print_on_panic = PrintOnPanic(seed, &experiment);
        run_twice(&experiment, seed);
        drop(print_on_panic);
    }
}

fn draw_keys(experiment: &mut Experiment, rng: &mut RngStream) {
    experiment.duration = Span(DURATION.0 / (1 + experiment.flows.len() as u64 / 20));
    let end = units::Instant::ZERO + experiment.duration;
    experiment.events.retain(|event| event.at < end);
    for link in &mut experiment.links {
        draw_pipe(&mut link.forward, rng);
        draw_pipe(&mut link.reverse, rng);
    }
    for flow in &mut experiment.flows {
        flow.start = flow.start.min(units::Instant::ZERO + Span(experiment.duration.0 / 2));
        let FlowKind::Tcp { host, .. } = &mut flow.kind else { continue };
        if rng.chance(0.3) {
            (host.sack, host.timestamps) = (rng.chance(0.5), rng.chance(0.5));
        }
    }
}

fn draw_pipe(pipe: &mut PipeConfig, rng: &mut RngStream) {
    pipe.rate = pipe.rate.map(|rate| {
        let factor = if rng.chance(0.5) { 1.0 } else { 0.1 + 2.0 * rng.below(100) as f64 / 100.0 };
        Rate::from_bits((rate.as_bits() as f64 * factor) as u64).min(MAX_RATE).max(Rate::from_bits(100_000))
    });
    if rng.chance(0.3) {
        pipe.delay = Span::from_micros(rng.below(100_000));
    }
    if rng.chance(0.2) {
        pipe.loss = LossModel::Random(rng.below(50) as f64 / 1000.0);
    }
    if rng.chance(0.2) {
        pipe.queue.limit = QueueLimit::Packets(1 + rng.below(500));
    }
}
