//! The lab's agent as a program of its own, for the lab's tests. `ropewalk` brings it as a hidden verb.

fn main() -> std::process::ExitCode {
    ropewalk_lab::agent(&std::env::args().skip(1).collect::<Vec<_>>())
}
