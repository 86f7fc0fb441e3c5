//! The program's help, with its commands in groups, and suggestions of what to try first.

use crate::output;
use clap::Command;

/// The groups of the help, each with its commands. A command that a build does not have is left out.
const GROUPS: &[(&str, &[&str])] = &[
    (
        "Simulate and measure",
        &["run", "explore", "new", "list", "trace", "evaluate", "drill", "probe", "fit", "advise", "doctor", "schema"],
    ),
    ("Results", &["report", "compare", "claims", "merge"]),
    (
        "Tunnel",
        &["setup", "up", "down", "reload", "show", "top", "ping", "test", "check", "fleet", "portal", "demo", "tunnel"],
    ),
    ("Keys of the tunnel", &["genkey", "pubkey", "genpsk"]),
    ("Linux kernel", &["kernel"]),
    ("The program itself", &["completions", "man", "help"]),
];

/// Suggestions of what to try first: the feature that is needed, a command, and a description.
const FIRST: &[(bool, &str, &str)] = &[
    (cfg!(feature = "study"), "ropewalk run one-link", "simulate a TCP flow: a table and a report page"),
    (cfg!(feature = "study"), "ropewalk new my-scenario", "write a scenario with comments, to edit and run"),
    (cfg!(feature = "study"), "ropewalk list", "what there is: scenarios, algorithms, schedulers"),
    (cfg!(feature = "lab"), "sudo ropewalk demo tunnel", "a tunnel over two links on this machine"),
    (cfg!(feature = "tunnel"), "sudo ropewalk setup server", "one end of a tunnel; `setup client` is the other"),
    (cfg!(feature = "kernel"), "ropewalk kernel check", "whether this kernel takes coupled congestion control"),
    (true, "ropewalk --help", "all commands"),
];

/// The program's command line, with a help whose commands are in groups.
pub(crate) fn with_groups(program: Command) -> Command {
    let template = format!(
        "{{about}}\n\nUsage: {{usage}}\n\n{}Options:\n{{options}}{{after-help}}",
        groups(&program, output::width())
    );
    program.help_template(template)
}

/// The text for a command line without a command.
pub(crate) fn first(program: &Command) -> String {
    let lines: Vec<_> = FIRST.iter().filter(|(is_built, ..)| *is_built).map(|(_, run, what)| (*run, *what)).collect();
    let about = program.get_about().map(ToString::to_string).unwrap_or_default();
    format!("{about}.\n\nTry first:\n{}", columns(&lines, output::width()))
}

fn groups(program: &Command, width: usize) -> String {
    let about = |name: &&str| match *name {
        "help" => Some("Print this help, or that of a command".to_owned()),
        name => program.find_subcommand(name)?.get_about().map(ToString::to_string),
    };
    let group = |(title, names): &(&str, &[&'static str])| {
        let lines: Vec<(&str, String)> = names.iter().filter_map(|name| Some((*name, about(name)?))).collect();
        let lines: Vec<(&str, &str)> = lines.iter().map(|(name, about)| (*name, about.as_str())).collect();
        if lines.is_empty() { String::new() } else { format!("{title}:\n{}\n", columns(&lines, width)) }
    };
    GROUPS.iter().map(group).collect()
}

/// Names, and texts next to them in lines of at most `width` columns.
fn columns(lines: &[(&str, &str)], width: usize) -> String {
    let name_width = lines.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let block = |(name, text): &(&str, &str)| {
        let wrapped = output::wrapped(text, width.saturating_sub(name_width + 4).max(20));
        let line =
            |(index, text): (usize, String)| format!("  {:name_width$}  {text}\n", if index == 0 { name } else { "" });
        wrapped.into_iter().enumerate().map(line).collect::<String>()
    };
    lines.iter().map(block).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arguments::Arguments;
    use clap::CommandFactory;

    #[test]
    fn each_command_stands_in_one_group() {
        for command in Arguments::command().get_subcommands().filter(|command| !command.is_hide_set()) {
            let name = command.get_name();
            let count = GROUPS.iter().flat_map(|(_, names)| *names).filter(|named| **named == name).count();
            assert_eq!(count, 1, "{name}");
        }
    }

    #[test]
    fn no_line_of_the_groups_is_wider_than_the_terminal() {
        for width in [40, 80] {
            let text = groups(&Arguments::command(), width);
            assert!(text.lines().all(|line| line.chars().count() <= width), "{text}");
        }
    }
}
