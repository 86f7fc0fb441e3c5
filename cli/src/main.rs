//! The program `ropewalk`.

fn main() -> std::process::ExitCode {
    ropewalk::main()
}
