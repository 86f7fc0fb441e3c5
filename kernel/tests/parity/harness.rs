//! A program, built by the C compiler, whose events are lines (`bpf/native/main.c`).

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use testing::{Reason, skip};

/// After an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) cwnd: u32,
    pub(crate) ssthresh: u32,
    /// Bytes a second.
    pub(crate) pacing_rate: u64,
    /// The first two words of the algorithm's state.
    pub(crate) state: [i64; 2],
}

/// A program as a process of this machine.
pub(crate) struct Native {
    program: PathBuf,
}

const FLAGS: &str =
    "-std=gnu11 -O2 -Wall -Wextra -Werror -Wno-unused-parameter -Wno-unused-function -fno-strict-aliasing";
/// Overflow of signed numbers, shifts beyond the width, division by zero and indices out of range end the program.
const SANITIZE: &str = "-fsanitize=undefined -fno-sanitize-recover=all";

impl Native {
    /// Builds `bpf/PROGRAM.bpf.c`. Without a compiler the test is skipped.
    pub(crate) fn of(program: &str) -> Option<Self> {
        if Command::new("cc").arg("--version").output().is_err() {
            skip(Reason::Missing, "cc: install a C compiler");
            return None;
        }
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let caller = thread::current().name().unwrap_or_default().replace("::", "-");
        let built = folder.join(format!("{program}-{caller}"));
        let sanitized = Self::compile(program, &built, SANITIZE);
        sanitized.or_else(|_| Self::compile(program, &built, "")).unwrap_or_else(|error| panic!("{program}: {error}"));
        Some(Self { program: built })
    }

    fn compile(program: &str, built: &Path, sanitize: &str) -> Result<(), String> {
        let bpf = Path::new(env!("CARGO_MANIFEST_DIR")).join("bpf");
        // Another process may build the same.
        let file = built.with_extension(std::process::id().to_string());
        let mut command = Command::new("cc");
        command.current_dir(bpf).args(FLAGS.split(' ')).args(sanitize.split_whitespace());
        command
            .arg(format!("-DPROGRAM=\"{program}.bpf.c\""))
            .args(["-I.", "-Inative", "native/main.c", "-o"])
            .arg(&file);
        let output = command.output().map_err(|error| error.to_string())?;
        if !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).into_owned());
        }
        fs::rename(&file, built).map_err(|error| error.to_string())
    }

    /// The answers to these lines.
    pub(crate) fn run(&self, lines: &[&str]) -> Result<Vec<Answer>, String> {
        let mut command = Command::new(&self.program);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|error| error.to_string())?;
        let mut stdin = child.stdin.take().expect("is piped");
        let input = lines.join("\n") + "\n";
        let output = thread::scope(|scope| {
            scope.spawn(move || stdin.write_all(input.as_bytes()));
            child.wait_with_output().map_err(|error| error.to_string())
        })?;
        if !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).into_owned());
        }
        let answers: Vec<Answer> = String::from_utf8_lossy(&output.stdout).lines().map(parse).collect();
        assert_eq!(answers.len(), lines.len(), "a line answers each event");
        Ok(answers)
    }
}

fn parse(line: &str) -> Answer {
    let numbers: Vec<i128> = line.split(' ').map(|number| number.parse().expect("a number")).collect();
    // The kernel warns at a window of 0, which it computes itself from a threshold of 0 (tcp_cwnd_reduction).
    assert!(numbers[0] >= 1 && numbers[1] >= 1, "window {}, threshold {}", numbers[0], numbers[1]);
    Answer {
        cwnd: numbers[0] as u32,
        ssthresh: numbers[1] as u32,
        pacing_rate: numbers[2] as u64,
        state: [numbers[3] as i64, numbers[4] as i64],
    }
}
