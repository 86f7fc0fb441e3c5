//! Whether the running kernel calls each hook that a program has; `cargo xtask kernel-matrix` asks other kernels.

use kernel::{Condition, PROGRAMS, Program};
use testing::{Reason, skip};

/// One of each kind: a model, a window with it, the programs with hooks that few have, and discern, which has most.
const SAMPLE: [&str; 5] = ["coupled-bbr", "wvegas-bbr", "dctcp", "westwood", "discern"];

#[test]
fn each_hook_of_a_program_is_called_by_a_loss_a_timeout_and_an_idle_pause() {
    if !nix::unistd::geteuid().is_root() {
        return skip(Reason::Missing, "root loads programs and makes network namespaces");
    }
    if let Some(obstacle) = kernel::check().iter().find(|condition| Condition::is_obstacle(condition)) {
        return skip(Reason::Kernel, &format!("{}: {}", obstacle.name, obstacle.found));
    }
    let registered = kernel::registered();
    let programs = PROGRAMS.iter().filter(|program| SAMPLE.contains(&program.name));
    let (free, taken): (Vec<&Program>, Vec<_>) =
        programs.partition(|program| !registered.contains(program.kernel_name));
    if let Some(program) = taken.first() {
        skip(Reason::Disturbed, &format!("{} is loaded for somebody else", program.kernel_name));
    }
    for program in free {
        let outcome = stress::trial::run(program).unwrap();
        assert_eq!(outcome.row().err(), None, "{}: {outcome:#?}", program.name);
    }
}
