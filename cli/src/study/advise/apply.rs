//! A tunnel's file: what it is configured to, and advice written into it: three keys, and every comment stays.

use super::commands;
use crate::{Failure, output};
use ::fit::{Advice, Candidate, Mode};
use std::path::{Path, PathBuf};
use toml_edit::{DocumentMut, Item, Table, value};

/// The folder of tunnels that go by their names.
const CONFIGURATIONS: &str = "/etc/ropewalk";
/// The greatest length of a tunnel's file, bytes.
const MAX_LEN: u64 = 16 << 20;

/// The file of a tunnel: of a name, the one in `/etc/ropewalk`.
pub(super) fn file(tunnel: &Path) -> PathBuf {
    let is_name = tunnel.components().count() == 1 && tunnel.extension().is_none();
    if is_name { Path::new(CONFIGURATIONS).join(tunnel).with_extension("toml") } else { tunnel.to_owned() }
}

/// The file of the tunnel that an argument in the place of links means; none if it means something else. A name stands for a
/// tunnel if there is no such file.
pub(super) fn tunnel_of(argument: &Path) -> Option<PathBuf> {
    let named = file(argument);
    match argument.exists() || argument.to_string_lossy().contains('=') {
        true => {
            let is_file = argument.extension().is_some_and(|extension| extension == "toml") && argument.is_file();
            is_file.then(|| filesystem::read_text_of_any(argument, MAX_LEN).ok()).flatten().and_then(|text| {
                let document: DocumentMut = text.parse().ok()?;
                document.get("interface").is_some().then_some(named)
            })
        }
        false => (named != argument).then_some(named),
    }
}

/// The measurement of a tunnel, which lies next to its file: `home.measured.json` of `home.toml`.
pub(super) fn measurement(tunnel: &Path) -> Result<PathBuf, Failure> {
    let place = tunnel.with_extension("measured.json");
    let name = tunnel.file_stem().unwrap_or_default().to_string_lossy();
    match (tunnel.is_file(), place.is_file()) {
        (true, true) => Ok(place),
        (false, _) => {
            Err(Failure::Usage(format!("there is neither a file `{name}` nor a tunnel {}", tunnel.display())))
        }
        (true, false) => Err(Failure::Usage(format!(
            "nothing was measured of {name} yet\n  help: `ropewalk test {name} --measurements {}` measures its paths through \
             the tunnel; `ropewalk probe`, which tells more, without it",
            place.display()
        ))),
    }
}

/// The text of a tunnel's file, if it is clear where the keys belong.
pub(super) fn read(file: &Path) -> Result<String, Failure> {
    let text = filesystem::read_text_of_any(file, MAX_LEN)
        .map_err(|error| Failure::Environment(format!("{}: {error}", file.display())))?;
    document(&text).map_err(|fault| Failure::Script(format!("{}: {fault}", file.display())))?;
    Ok(text)
}

/// The document of a tunnel's file; an error says why it is not clear.
fn document(text: &str) -> Result<DocumentMut, String> {
    let document: DocumentMut = text.parse().map_err(|error: toml_edit::TomlError| error.to_string())?;
    let interface = document.get("interface").and_then(Item::as_table_like);
    let Some(interface) = interface else { return Err("it has no [interface], so it is no tunnel's file".to_owned()) };
    if interface.get("mode").is_some_and(|mode| mode.as_str() != Some("ropewalk")) {
        return Err("a tunnel in `mpt` mode has no congestion control".to_owned());
    }
    match document.get("tunnel") {
        Some(tunnel) if !tunnel.is_table() => {
            Err("`tunnel` is not written as a table [tunnel]: change it by hand".to_owned())
        }
        _ => Ok(document),
    }
}

/// What the text of a tunnel's file configures.
pub(super) fn configured(text: &str) -> Candidate {
    let document = document(text).unwrap_or_default();
    let key = |name: &str| document.get("tunnel")?.get(name)?.as_str();
    Candidate::of_tunnel(key("congestion"), key("scheduler"), key("relay") == Some("tcp"))
}

/// Writes the keys of the first candidate into the tunnel's file.
pub(super) fn apply(file: &Path, text: &str, advice: &Advice) -> Result<(), Failure> {
    let first = advice.ranked.first().filter(|first| matches!(first.candidate.mode, Mode::Tunnel | Mode::Relay));
    let Some(first) = first.filter(|_| advice.is_decided) else {
        return Err(Failure::Run("the advice is not clear enough to be applied".to_owned()));
    };
    let edited = edited(text, &commands::keys(&first.candidate))
        .map_err(|fault| Failure::Script(format!("{}: {fault}", file.display())))?;
    std::fs::write(file, edited).map_err(|error| Failure::Environment(format!("{}: {error}", file.display())))?;
    let file = file.display();
    output::print(&format!(
        "\n{file} is changed: do the same at the other end, and restart both. A reload refuses these keys.\n"
    ))
}

/// The text with the keys in its table `[tunnel]`. A key that says the same by default is not added.
fn edited(text: &str, keys: &[(&str, String)]) -> Result<String, String> {
    let mut document = document(text)?;
    let table = document.entry("tunnel").or_insert(Item::Table(Table::new()));
    let table = table.as_table_mut().ok_or("`tunnel` is no table")?;
    for (key, new) in keys {
        match table.get_mut(key).and_then(Item::as_value_mut) {
            Some(old) => {
                let decor = old.decor().clone();
                *old = new.as_str().into();
                *old.decor_mut() = decor;
            }
            None if *key == "relay" && new == "off" => {}
            None => drop(table.insert(key, value(new.as_str()))),
        }
    }
    Ok(document.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "# Home.\n[interface] # this end\naddress = \"10.77.0.2/24\"\n\n[tunnel]\n# chosen by hand\ncongestion = \
                        \"cubic\" # for the radio\nrelay = \"tcp\"\n\n[[peer]]\nname = \"far\"\n";

    #[test]
    fn keys_are_changed_and_comments_stay() {
        let keys = [("congestion", "bbr".to_owned()), ("scheduler", "minrtt".to_owned()), ("relay", "off".to_owned())];
        let text = edited(FILE, &keys).unwrap();
        let expected = FILE
            .replace("\"cubic\" # for the radio", "\"bbr\" # for the radio")
            .replace("relay = \"tcp\"\n", "relay = \"off\"\nscheduler = \"minrtt\"\n");
        assert_eq!(text, expected);
        let added = edited("[interface]\naddress = \"10.77.0.2/24\"\n", &keys).unwrap();
        assert!(added.contains("[tunnel]\ncongestion = \"bbr\"\nscheduler = \"minrtt\"\n"), "{added}");
        assert!(!added.contains("relay"), "{added}");
    }

    #[test]
    fn what_is_configured_is_read_with_the_defaults_of_a_tunnel() {
        let found = configured(FILE);
        assert_eq!((found.mode, found.congestion.as_str()), (Mode::Relay, "cubic"));
        assert_eq!(found.scheduler, configured("[interface]\naddress = \"10.77.0.2/24\"\n").scheduler);
    }

    #[test]
    fn an_unclear_file_is_refused() {
        for text in
            ["", "[interface", "tunnel = { congestion = \"cubic\" }\n[interface]\n", "[interface]\nmode = \"mpt\"\n"]
        {
            assert!(edited(text, &[("congestion", "bbr".to_owned())]).is_err(), "{text}");
        }
    }

    #[test]
    fn a_tunnel_in_the_place_of_links_is_a_name_or_a_file_with_an_interface() {
        let folder = tempfile::tempdir().unwrap();
        let [tunnel, links] = ["home.toml", "links.toml"].map(|name| folder.path().join(name));
        std::fs::write(&tunnel, FILE).unwrap();
        std::fs::write(&links, "[[path]]\nname = \"lte\"\n").unwrap();
        assert_eq!(tunnel_of(&tunnel), Some(tunnel.clone()));
        assert_eq!(
            (tunnel_of(&links), tunnel_of(folder.path()), tunnel_of(Path::new("lte=a.json"))),
            (None, None, None)
        );
        assert_eq!(tunnel_of(Path::new("no-such-tunnel")), Some("/etc/ropewalk/no-such-tunnel.toml".into()));
        let error = measurement(&tunnel).unwrap_err().to_string();
        assert!(error.contains("nothing was measured of home yet") && error.contains("home.measured.json"), "{error}");
        std::fs::write(folder.path().join("home.measured.json"), "{}").unwrap();
        assert_eq!(measurement(&tunnel).unwrap(), folder.path().join("home.measured.json"));
    }

    #[test]
    fn a_name_stands_for_the_file_in_the_folder_of_tunnels() {
        assert_eq!(file(Path::new("rw0")), Path::new("/etc/ropewalk/rw0.toml"));
        assert_eq!(file(Path::new("home.toml")), Path::new("home.toml"));
        assert_eq!(file(Path::new("./rw0")), Path::new("./rw0"));
    }
}
