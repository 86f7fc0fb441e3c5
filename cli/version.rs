// The version of a build, from git. Included by the build script and by xtask, which name programs and packages alike.

use std::path::Path;
use std::process::Command;

/// The version of the sources in `folder`, whose manifest says `base`, in the form and the order of Debian's versions
/// (deb-version(7)): `0.1.0` at the tag `v0.1.0`, `0.1.0~git20261127135423.06ae08f7ab` before there is such a tag, and
/// `0.1.0+git...` after it, with the commit's time in UTC. `.changed` follows if files differ from the commit's. Without git
/// it is `base`.
pub(crate) fn version(folder: &Path, base: &str) -> String {
    let git = |arguments: &[&str]| {
        let output = Command::new("git").arg("-C").arg(folder).args(arguments).env("TZ", "UTC").output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    // Not another repository that holds a copy of the sources.
    let top = git(&["rev-parse", "--show-toplevel"]).map(std::path::PathBuf::from);
    if top.is_none() || top.and_then(|top| top.canonicalize().ok()) != folder.canonicalize().ok() {
        return base.to_owned();
    }
    let tag = format!("v{base}");
    let has_changes = git(&["status", "--porcelain", "--untracked-files=no"]).is_some_and(|files| !files.is_empty());
    let is_tagged = git(&["tag", "--points-at", "HEAD"]).is_some_and(|tags| tags.lines().any(|name| name == tag));
    if is_tagged && !has_changes {
        return base.to_owned();
    }
    let Some(commit) = git(&["log", "-1", "--abbrev=10", "--format=%cd.%h", "--date=format-local:%Y%m%d%H%M%S"]) else {
        return base.to_owned();
    };
    let is_after = git(&["merge-base", "--is-ancestor", &tag, "HEAD"]).is_some();
    format!("{base}{}git{commit}{}", if is_after { '+' } else { '~' }, if has_changes { ".changed" } else { "" })
}
