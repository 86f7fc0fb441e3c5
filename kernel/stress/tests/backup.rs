//! A sibling that is not in use changes nothing on the running kernel.

use kernel::{Condition, Program};
use stress::backup::growth_beside_backup;
use testing::{Reason, skip};

/// A program that is loaded as long as this lives.
struct Loaded(&'static Program);

impl Drop for Loaded {
    fn drop(&mut self) {
        let _ = kernel::unload(self.0);
    }
}

/// Reno's own growth is 1, of a packet more or less in a window of 100. Counted as a sibling, the backup leaves a quarter. The
/// lower limit is the middle between both: while a busy machine does not run, the window is not full and does not grow.
#[test]
fn beside_an_idle_backup_a_window_grows_as_renos() {
    if !nix::unistd::geteuid().is_root() {
        return skip(Reason::Missing, "root loads programs and makes network namespaces");
    }
    if let Some(obstacle) = kernel::check().iter().find(|condition| Condition::is_obstacle(condition)) {
        return skip(Reason::Kernel, &format!("{}: {}", obstacle.name, obstacle.found));
    }
    for name in ["lia", "olia", "balia"] {
        let program = kernel::program(name).expect("it is in the catalogue");
        if kernel::registered().contains(program.kernel_name) {
            skip(Reason::Disturbed, &format!("{} is loaded for somebody else", program.kernel_name));
            continue;
        }
        kernel::load(program).unwrap();
        let _loaded = Loaded(program);
        let Some(growth) = growth_beside_backup(program.kernel_name).unwrap() else {
            skip(Reason::Disturbed, &format!("{name}: this machine stopped in each try"));
            continue;
        };
        println!("{name}: {growth:.2} of Reno's growth");
        assert!((0.5..1.2).contains(&growth), "{name}: {growth}");
    }
}
