//! `cargo xtask CHORE`: the tasks of developers and CI. Without a chore it lists them.

use std::process::ExitCode;

mod artefacts;
mod bpf;
mod campaign;
mod deb;
mod dist;
mod drill;
mod kernel;
mod look;
mod matrix;
mod page;
mod paper;
mod python;
mod reference;
mod release;
mod sbom;
mod setup;
mod shell;
mod site;
mod size;
mod test;
mod tidy;
mod traces;
#[path = "../../cli/version.rs"]
mod version;
mod wheel;

const HELP: &str = "\
cargo xtask CHORE

  setup                         install packages and kernel, or say which are missing
  packages                      install the packages that the tests need, or say which are missing
  test                          the tests of the simulator, the pure crates, one tunnel and one cell of the lab: minutes
  test --all-features           the same, built as --full builds it, which then need not build again
  test --full                   formatting, tidy, lints, documentation, then every test: 20 minutes
  test python                   the Python package: its wheel, types, formatting and tests
  test frameworks               its tests, and the learning environments with frameworks that need PyTorch; 7 GB in target
  campaign [NAME [--seeds FROM..TO]]
                                tests that draw a situation from each seed, over more seeds than `test` has; resumable
  tidy [--update]               the house rules as checks; --update lets the ratchets shrink
  tidy --prose [CRATE]          long sentences and avoided words in doc comments, and their count per crate
  bpf [--check]                 build the objects of kernel/bpf, which are in the tree; --check only compares
  kernel                        build Linux 6.1 with virtual time for the lab, into target/kernel/linux
  kernel-traces [STUDY ...]     run our scenarios on that kernel, results into scenarios/validation
  kernel-drill [--side sender|receiver] [--on uml|netns] [--congestion NAME,...] [--seeds FROM..TO] [--again] [--shrink]
               [--keep FOLDER]
                                random situations of our TCP sender or receiver against a kernel's, packet by packet: that
                                kernel, or with netns this machine's (root); resumable; differences in target/kernel-drill
  kernel-page                   compare these with the simulator, into target/kernel/beside-the-simulator.html
  paper [--quick] [--stored] [--results FOLDER] [--program FILE] [STUDY ...]
                                run the studies of docs/explanation/algorithm.md, into target/paper, and write its tables
                                and figure;
                                resumable; --quick only prints the tables of short runs, --stored runs nothing;
                                the study `kernel` needs root and runs only by name
  reference [--check] [--program FILE]
                                write the generated parts of docs/reference from the schema, lists and help of a program
                                with all features; --check only says which pages are not current
  kernel-matrix [--kernel FILE ...] [--soak MINUTES] [--seed N] [NAME ...]
                                the eBPF programs in virtual machines with Debian's Linux 6.1 and 6.12, or with kernels
                                of your own (a Debian package or an image)
  dist [--profile FILE] [--check-reproducible]
                                the program as it is released, into target/released: link-time and profile-guided
                                optimisation; --check-reproducible builds it again in another folder
  sbom                          the components of that program, as a CycloneDX document, into target/released
  deb [--out FOLDER] [--profile FILE | --program FILE]
                                the Debian package of that program, or of a given one, into target/debian or FOLDER
  deb [--out FOLDER] kernel [--program FILE]
                                the Debian package `ropewalk-kernel`: congestion control for the kernel alone, as a small
                                program; it is built, or a given one is packed
  static [--target TRIPLE] [--profile NAME]
                                the tunnel alone as one static program, and its archive, into target/artefacts
  oci [--target TRIPLE] [--profile NAME]
                                an image of it for container runtimes, into target/artefacts
  openwrt [--target TRIPLE] [--profile NAME] [--arch NAME]
                                a package of it for OpenWrt, into target/artefacts
  release --key FINGERPRINT --url URL FILE...
                                these artefacts with signed checksums, a repository for apt and an install script, as they
                                are published at URL, into target/publish
  wheel [--profile NAME] [--target TRIPLE]
                                the Python package with the program, into target/wheels; NAME is dist if not given; with
                                a target it is linked by zig: manylinux2014, also for another processor
  site [--look]                 the site of docs/, into target/site; --look opens its pages and each kind of page that the
                                program writes in Chromium, checks them, and leaves screenshots in target/look
  python-types                  the classes of a scenario for Python, from its schema
  bench [--runs N] [--only WORKLOAD,...] [--program FILE] [--build NAME=FILE] [--beside NAME=FILE] [--record] [--json]
                                packet-hops per CPU second of the benchmark scenarios, compared with a calibration loop,
                                other builds of ropewalk and other simulators; --record adds them to bench/history.csv
  bench tunnel [speed] [bond] [small] [hostile] [peers] [clients] [cost] [--only SYSTEM,...]
               [--links N,...] [--bonds NAME,...] [--seconds N] [--runs N] [--clients N] [--build NAME=FILE] [--json]
                                the tunnel compared with other systems (needs root and iperf3); cost: system calls, sleeps
                                and instructions of its daemons, compared with other builds
  bench field [--only CASE,...] [--scheduler NAME] [--json]
                                calls next to bulk while links fail, by the daemon, with verdicts (needs root and iperf3)
  bench links [--seeds FROM..TO] [--fit BUDGET] [--advise BUDGET] [--for PURPOSE] [--json]
                                probe, fit, advise --apply and --check over drawn links, with the daemon (root and iperf3)
  bench kernel [--rounds N] [--megabytes N] [--json] [NAME ...]
                                the cost of the eBPF programs on this kernel, compared with its own Reno and CUBIC (root)
  bench size [--whole FILE] [--record]
                                bytes of the program and the package `ropewalk-kernel`, next to the whole program (the
                                released one, or FILE); --record adds them to bench/size.csv
  bench stacks [--runs N]       packets per CPU second of TCP, QUIC, quinn and noq over the same links, as a ratio to TCP
  bench resources [--json]      the cost of each kind of datagram for the receiving host
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match dispatch(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("xtask: {message}");
            ExitCode::FAILURE
        }
    }
}

fn dispatch(arguments: &[&str]) -> Result<(), String> {
    match arguments {
        [] | ["help" | "--help" | "-h"] => shell::print(HELP),
        ["setup"] => setup::run().and_then(|()| kernel::ensure()),
        ["packages"] => setup::run(),
        ["test"] => test::quick(),
        ["test", "--all-features"] => test::quick_all_features(),
        ["test", "--full"] => test::full(),
        ["test", "python"] => test::python(),
        ["test", "frameworks"] => test::frameworks(),
        ["campaign", options @ ..] => campaign::run(options),
        ["tidy"] => tidy::run(false),
        ["tidy", "--update"] => tidy::run(true),
        ["tidy", "--prose"] => tidy::print_prose(None),
        ["tidy", "--prose", folder] => tidy::print_prose(Some(folder)),
        ["bpf"] => bpf::build(),
        ["bpf", "--check"] => bpf::check(),
        ["kernel"] => kernel::build(),
        ["kernel-drill", options @ ..] => drill::run(options),
        ["kernel-traces", studies @ ..] => traces::run(studies),
        ["kernel-page"] => traces::page(),
        ["kernel-matrix", options @ ..] => matrix::run(options),
        ["paper", options @ ..] => paper::run(options),
        ["reference", options @ ..] => reference::run(options),
        ["dist", options @ ..] => dist::run(options),
        ["sbom"] => sbom::write(),
        ["deb", options @ ..] => deb::build(options),
        ["static", options @ ..] => artefacts::static_program(options),
        ["oci", options @ ..] => artefacts::oci(options),
        ["openwrt", options @ ..] => artefacts::openwrt(options),
        ["release", options @ ..] => release::run(options),
        ["site", options @ ..] => site::run(options),
        ["python-types"] => wheel::types(),
        ["wheel", options @ ..] => wheel::run(options),
        ["bench", "size", options @ ..] => size::run(options),
        ["bench", options @ ..] => bench(options),
        unknown => Err(format!("no chore `{}`\n\n{HELP}", unknown.join(" "))),
    }
}

/// Builds the measured programs and starts the benchmarks, which are in `bench/`.
fn bench(options: &[&str]) -> Result<(), String> {
    let programs = match options.first() {
        Some(&"stacks") => "-p ropewalk-stacks",
        _ => "--all-features -p ropewalk -p ropewalk-lab",
    };
    shell::run(&format!("cargo build --quiet --locked --release {programs} -p ropewalk-bench"))?;
    shell::run(&format!("{} {}", shell::target().join("release/ropewalk-bench").display(), options.join(" ")))
}
