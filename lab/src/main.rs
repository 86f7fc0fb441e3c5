//! The lab's agent as a separate program, for the lab's tests. `ropewalk` contains it as a hidden command, whose name is
//! accepted here too.

fn main() -> std::process::ExitCode {
    let arguments = std::env::args().skip(1).skip_while(|argument| argument == "lab-agent");
    ropewalk_lab::agent(&arguments.collect::<Vec<_>>())
}
