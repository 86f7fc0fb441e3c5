//! Checks whether the running kernel and this process can load programs, with a remedy for each missing condition.

use crate::catalogue::program;
use crate::loader::try_load;
use std::path::Path;
use std::{env, fs};

/// The oldest kernel on which the programs have run.
pub const OLDEST: (u32, u32) = (6, 1);

/// The file in which the kernel describes its types.
const BTF: &str = "/sys/kernel/btf/vmlinux";
/// The type of a registered congestion control, in that description.
const STRUCT_OPS: &[u8] = b"\0bpf_struct_ops_tcp_congestion_ops\0";
/// A member of `struct bpf_prog_aux` in kernels whose vendor has changed when programs run. Linux has no member of this
/// name.
const OWNED_BY_INIT: &[u8] = b"\0init_owned\0";
/// The capabilities that loading needs, with their bits (`linux/capability.h`). CAP_SYS_ADMIN includes the other two.
const CAPABILITIES: [(&str, u32); 3] = [("CAP_NET_ADMIN", 12), ("CAP_PERFMON", 38), ("CAP_BPF", 39)];
const CAP_SYS_ADMIN: u32 = 21;
const CAPABILITIES_ROW: &str = "capabilities";
const COMPILER: &str = "BPF JIT";
/// The first user namespace, whose number is Linux's `PROC_USER_INIT_INO`: capabilities in other namespaces do not
/// allow loading.
const USER_NAMESPACE: &str = "user:[4026531837]";
/// Programs that are useful with the algorithms, and the Debian packages that contain them.
const TOOLS: [(&str, &str); 2] = [("ip", "iproute2"), ("mptcpize", "mptcpize")];

/// One condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    /// What is examined.
    pub name: &'static str,
    /// What was found.
    pub found: String,
    /// What to do; `None` if the condition is met.
    pub remedy: Option<String>,
    /// Whether no program can be loaded without it.
    pub required: bool,
}

impl Condition {
    /// Whether it keeps programs from being loaded.
    #[must_use]
    pub fn is_obstacle(&self) -> bool {
        self.required && self.remedy.is_some()
    }

    /// The condition for finding registered programs: Linux lists them only with CAP_SYS_ADMIN.
    pub(crate) fn finding_programs() -> Self {
        condition(CAPABILITIES_ROW, true, "no CAP_SYS_ADMIN", Some("as root: loaded programs are listed for root only"))
    }
}

/// The program that the test loads: the smallest one.
const ATTEMPT: &str = "scalable";

/// Examines the running kernel and the capabilities of this process, and tries to load a small program, without registering
/// it. The result of that test takes precedence over the files.
#[must_use]
pub fn check() -> Vec<Condition> {
    let mut conditions = conditions();
    let outcome = program(ATTEMPT).ok_or_else(String::new).and_then(try_load);
    judge(&mut conditions, outcome);
    conditions
}

/// Adds the result of the test. After a success only a disabled JIT compiler is an obstacle. After a failure the test
/// itself is one if no other condition explains it.
fn judge(conditions: &mut Vec<Condition>, outcome: Result<(), String>) {
    let attempt = match outcome {
        Ok(()) => {
            conditions.iter_mut().for_each(|condition| condition.required = condition.name == COMPILER);
            condition("attempt", true, "the kernel accepts a program", None)
        }
        Err(reason) => {
            let is_explained = conditions.iter().any(Condition::is_obstacle);
            let remedy =
                if is_explained { "remove the obstacles above" } else { "report this line, and the kernel's version" };
            condition("attempt", !is_explained, reason, Some(remedy))
        }
    };
    conditions.push(attempt);
}

/// The conditions according to files, without the test.
pub(crate) fn conditions() -> Vec<Condition> {
    let read = |file: &str| fs::read_to_string(file).map(|text| text.trim().to_owned());
    vec![
        version(&read("/proc/sys/kernel/osrelease").unwrap_or_default()),
        types(fs::read(BTF).ok().as_deref()),
        left_out(leaves_programs_out()),
        compiler(read("/proc/sys/net/core/bpf_jit_enable").ok().as_deref(), is_root_only("/proc/sys/net/core")),
        lockdown(&read("/sys/kernel/security/lockdown").unwrap_or_default()),
        capabilities(&read("/proc/self/status").unwrap_or_default(), is_in_first_user_namespace()),
        mptcp(read("/proc/sys/net/mptcp/enabled").ok().as_deref()),
        tools(|name| {
            env::split_paths(&env::var_os("PATH").unwrap_or_default()).any(|folder| folder.join(name).is_file())
        }),
    ]
}

fn condition(name: &'static str, required: bool, found: impl Into<String>, remedy: Option<&str>) -> Condition {
    Condition { name, found: found.into(), remedy: remedy.map(str::to_owned), required }
}

fn version(release: &str) -> Condition {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(|number| number.parse().unwrap_or(0));
    let version = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    let remedy = format!("Linux {}.{} or later: older ones lack what the programs call", OLDEST.0, OLDEST.1);
    condition("kernel", true, release, (version < OLDEST).then_some(&remedy))
}

fn types(btf: Option<&[u8]>) -> Condition {
    let (found, remedy) = match btf {
        None => (format!("{BTF} cannot be read"), Some("a kernel with CONFIG_DEBUG_INFO_BTF=y, as distributions have")),
        Some(btf) if !contains(btf, STRUCT_OPS) => (
            "no congestion control by eBPF".to_owned(),
            Some("a kernel with CONFIG_BPF_JIT=y and CONFIG_BPF_SYSCALL=y"),
        ),
        Some(_) => (BTF.to_owned(), None),
    };
    condition("types (BTF)", true, found, remedy)
}

fn contains(btf: &[u8], name: &[u8]) -> bool {
    btf.windows(name.len()).any(|window| window == name)
}

/// Whether this kernel skips programs while it handles packets in an interrupt of a thread of process 1, as a vendor's
/// kernel does. The window or threshold is then an arbitrary value from the stack.
#[must_use]
pub fn leaves_programs_out() -> bool {
    fs::read(BTF).is_ok_and(|btf| contains(&btf, OWNED_BY_INIT))
}

fn left_out(leaves_out: bool) -> Condition {
    let remedy = "an unmodified Linux kernel: with this one a window may take any value for a while \
        (docs/how-to/load-into-the-kernel.md)";
    let found = if leaves_out { "skipped in interrupts of process 1, by a vendor's change" } else { "always run" };
    condition("programs", false, found, leaves_out.then_some(remedy))
}

/// The condition of the JIT compiler. `hidden`: the setting exists, but only root may read it.
fn compiler(setting: Option<&str>, hidden: bool) -> Condition {
    match setting {
        Some("0") => condition(COMPILER, true, "off", Some("sysctl net.core.bpf_jit_enable=1")),
        Some(_) => condition(COMPILER, true, "on", None),
        None if hidden => condition(COMPILER, true, "only root can read the setting", None),
        // The setting is in the first network namespace only, and a process cannot tell whether its own is the first.
        None => condition(COMPILER, true, "unknown: only the first network namespace shows it", None),
    }
}

fn is_root_only(folder: &str) -> bool {
    Path::new(folder).join("bpf_jit_enable").exists()
}

fn lockdown(modes: &str) -> Condition {
    let mode = modes.split(['[', ']']).nth(1).unwrap_or("none");
    let remedy = "boot without lockdown=confidentiality: it forbids reading the kernel's memory";
    condition("lockdown", true, mode, (mode == "confidentiality").then_some(remedy))
}

fn is_in_first_user_namespace() -> bool {
    fs::read_link("/proc/self/ns/user").is_ok_and(|namespace| namespace == Path::new(USER_NAMESPACE))
}

fn capabilities(status: &str, first_user_namespace: bool) -> Condition {
    if !first_user_namespace {
        let remedy = "outside this user namespace (a container's, for example): Linux loads no programs from it";
        return condition(CAPABILITIES_ROW, true, "those of a user namespace", Some(remedy));
    }
    let line = status.lines().find_map(|line| line.strip_prefix("CapEff:")).unwrap_or("");
    let bits = u64::from_str_radix(line.trim(), 16).unwrap_or(0);
    let has = |bit: u32| bits >> bit & 1 == 1;
    let is_missing = |&(name, bit): &(&'static str, u32)| {
        let missing = !has(bit) && (name == "CAP_NET_ADMIN" || !has(CAP_SYS_ADMIN));
        missing.then_some(name)
    };
    let missing: Vec<&str> = CAPABILITIES.iter().filter_map(is_missing).collect();
    let found = if missing.is_empty() { "all three".to_owned() } else { format!("no {}", missing.join(", ")) };
    let remedy = "as root, or with CAP_BPF, CAP_NET_ADMIN and CAP_PERFMON";
    condition(CAPABILITIES_ROW, true, found, (!missing.is_empty()).then_some(remedy))
}

fn mptcp(enabled: Option<&str>) -> Condition {
    let (found, remedy) = match enabled {
        Some("1") => ("on", None),
        Some(_) => ("off", Some("sysctl net.mptcp.enabled=1: without it there is nothing to couple")),
        None => ("none", Some("a kernel with CONFIG_MPTCP=y: without it there is nothing to couple")),
    };
    condition("MPTCP", false, found, remedy)
}

fn tools(exists: impl Fn(&str) -> bool) -> Condition {
    let missing: Vec<(&str, &str)> = TOOLS.into_iter().filter(|(name, _)| !exists(name)).collect();
    let of = |part: fn(&(&'static str, &'static str)) -> &'static str| missing.iter().map(part).collect::<Vec<_>>();
    let remedy = format!("apt-get install {}: endpoints of MPTCP, and MPTCP for programs", of(|tool| tool.1).join(" "));
    let found =
        if missing.is_empty() { "ip, mptcpize".to_owned() } else { format!("no {}", of(|tool| tool.0).join(", ")) };
    condition("tools", false, found, (!missing.is_empty()).then_some(&remedy))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_met(condition: &Condition) -> bool {
        condition.remedy.is_none()
    }

    #[test]
    fn a_kernel_is_new_enough_from_6_1() {
        let versions = ["6.1.0-47-amd64", "6.18.44-fc", "7.0.0", "10.0"];
        assert!(versions.iter().all(|release| is_met(&version(release))));
        assert!(["6.0.19", "5.15.0-100-generic", "", "Linux"].iter().all(|release| version(release).is_obstacle()));
    }

    #[test]
    fn types_must_describe_a_registered_congestion_control() {
        assert!(types(None).is_obstacle());
        assert!(types(Some(b"\0tcp_congestion_ops\0sock\0")).is_obstacle());
        assert!(is_met(&types(Some(b"\0sock\0bpf_struct_ops_tcp_congestion_ops\0x\0"))));
    }

    #[test]
    fn a_setting_that_cannot_be_read_is_no_obstacle() {
        assert!(is_met(&compiler(None, true)) && is_met(&compiler(None, false)));
        assert!(is_met(&compiler(Some("1"), true)) && compiler(Some("0"), true).is_obstacle());
    }

    #[test]
    fn the_attempt_counts_more_than_what_files_say() {
        let after = |mut conditions: Vec<Condition>, outcome| {
            judge(&mut conditions, outcome);
            conditions.into_iter().filter(Condition::is_obstacle).map(|condition| condition.name).collect::<Vec<_>>()
        };
        let refused = || Err("Operation not permitted".to_owned());
        assert_eq!(after(vec![version("5.15.0")], Ok(())), [""; 0]);
        assert_eq!(after(vec![compiler(Some("0"), false)], Ok(())), ["BPF JIT"]);
        assert_eq!(after(vec![version("6.18.0")], refused()), ["attempt"]);
        assert_eq!(after(vec![version("5.15.0")], refused()), ["kernel"]);
    }

    #[test]
    fn lockdown_hinders_only_where_memory_cannot_be_read() {
        assert!(lockdown("none integrity [confidentiality]").is_obstacle());
        assert!(
            ["none [integrity] confidentiality", "[none] integrity confidentiality", ""]
                .iter()
                .all(|modes| is_met(&lockdown(modes)))
        );
    }

    #[test]
    fn root_or_three_capabilities() {
        let status = |bits: u64| format!("Name:\tx\nCapEff:\t{bits:016x}\nCapBnd:\t0\n");
        let with = |bits: u64| capabilities(&status(bits), true);
        assert!(is_met(&with(1 << 12 | 1 << 38 | 1 << 39)) && is_met(&with(1 << 12 | 1 << 21)));
        assert_eq!(with(1 << 12).found, "no CAP_PERFMON, CAP_BPF");
        assert_eq!(with(1 << 21).found, "no CAP_NET_ADMIN");
        assert!(with(0).is_obstacle());
        assert!(capabilities(&status(u64::MAX), false).is_obstacle());
    }

    #[test]
    fn tools_that_are_missing_are_named_with_their_packages() {
        assert!(is_met(&tools(|_| true)));
        let missing = tools(|name| name == "mptcpize");
        assert_eq!((missing.found.as_str(), missing.is_obstacle()), ("no ip", false));
        assert!(missing.remedy.is_some_and(|remedy| remedy.starts_with("apt-get install iproute2: ")));
    }

    #[test]
    fn without_mptcp_single_paths_still_have_their_algorithms() {
        assert!([None, Some("0")].iter().all(|enabled| !is_met(&mptcp(*enabled)) && !mptcp(*enabled).is_obstacle()));
    }
}
