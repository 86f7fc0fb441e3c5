//! Ropewalk's program with one more algorithm: `ropewalk-example run SCENARIO --set flow.NAME.congestion=gaimd`.

use std::process::ExitCode;

fn main() -> ExitCode {
    if let Err(error) = plugin_example::register() {
        eprintln!("{error}");
        return ExitCode::FAILURE;
    }
    ropewalk::main()
}
