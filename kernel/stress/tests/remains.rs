//! What is left of programs that were used hard; the long form is `ropewalk-stress remains`.

use kernel::{Condition, PROGRAMS, Program};
use stress::remains::{Load, run};
use testing::{Reason, skip};

/// Two connections at once, short connections, unloading while in use. Endpoints do not come and go here: on some kernels
/// that can stop the machine, whatever the algorithm is (`docs/how-to/load-into-the-kernel.md`); it belongs to virtual ones.
#[test]
fn coupled_programs_that_are_unloaded_while_in_use_leave_nothing_behind() {
    if !nix::unistd::geteuid().is_root() {
        return skip(Reason::Missing, "root loads programs and makes network namespaces");
    }
    if let Some(obstacle) = kernel::check().iter().find(|condition| Condition::is_obstacle(condition)) {
        return skip(Reason::Kernel, &format!("{}: {}", obstacle.name, obstacle.found));
    }
    let registered = kernel::registered();
    let is_free = |program: &&Program| !registered.contains(program.kernel_name);
    let (free, taken): (Vec<_>, Vec<_>) = PROGRAMS.iter().filter(|program| program.coupled).partition(is_free);
    if let Some(program) = taken.first() {
        skip(Reason::Disturbed, &format!("{} is loaded for somebody else", program.kernel_name));
    }
    let remains = run(&free, Load { endpoint_changes: 0, short_connections: 10 }).unwrap();
    assert_eq!(remains.rows.len(), free.len());
    assert_eq!(remains.findings, [""; 0], "{:#?}", remains.rows);
}
