//! Ropewalk's program with quinn and noq in it: `ropewalk-stacks run SCENARIO`.

use std::process::ExitCode;

fn main() -> ExitCode {
    if let Err(error) = stacks::register() {
        eprintln!("{error}");
        return ExitCode::FAILURE;
    }
    ropewalk::main()
}
