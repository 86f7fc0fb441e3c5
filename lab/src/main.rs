//! The lab's agent as a program of its own, for the lab's tests. `ropewalk` brings it as a hidden verb, which may stand here
//! too.

fn main() -> std::process::ExitCode {
    let words = std::env::args().skip(1).skip_while(|word| word == "lab-agent");
    ropewalk_lab::agent(&words.collect::<Vec<_>>())
}
