//! Work in a network namespace of `ip netns`.

use std::error::Error;
use std::fs::File;

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

/// Does `work` in the namespace `name`, on a thread of its own, because a namespace is an attribute of a thread.
pub(crate) fn within<T: Send>(name: &str, work: impl FnOnce() -> Outcome<T> + Send) -> Outcome<T> {
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            enter(name)?;
            work()
        });
        thread.join().map_err(|_| "its thread panicked")?
    })
}

/// Moves this thread into the namespace `name`.
pub(crate) fn enter(name: &str) -> Outcome<()> {
    let namespace = File::open(format!("/run/netns/{name}"))?;
    Ok(nix::sched::setns(namespace, nix::sched::CloneFlags::CLONE_NEWNET)?)
}
