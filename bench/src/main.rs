//! Benchmarks of the simulator, of the tunnel and of the programs for the kernel: `cargo xtask bench`.

use std::process::ExitCode;

mod kernel;
mod measure;
mod resources;
mod shell;
mod simulator;
mod tunnel;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let outcome = match &arguments[..] {
        ["tunnel", options @ ..] => tunnel::run(options),
        ["links", options @ ..] => tunnel::links::run(options),
        ["field", options @ ..] => tunnel::field::run(options),
        ["kernel", options @ ..] => kernel::run(options),
        ["stacks", options @ ..] => simulator::stacks::run(options),
        ["resources", options @ ..] => resources::run(options),
        // Subcommands that the benchmarks start themselves.
        ["measure", command @ ..] => measure::run(command),
        ["calibrate"] => shell::print(&format!("{}\n", simulator::calibrate())),
        ["clients", arguments @ ..] => tunnel::clients::simulated::run(arguments),
        ["attack", arguments @ ..] => tunnel::hostile::attack(arguments),
        ["call", arguments @ ..] => tunnel::calls::call(arguments),
        ["hear", time] => tunnel::calls::hear(time),
        ["echo", port] => tunnel::probe::echo(port),
        ["probe", arguments @ ..] => tunnel::probe::probe(arguments),
        options => simulator::run(options),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("bench: {message}");
            ExitCode::FAILURE
        }
    }
}
