//! systemd's journal by its native protocol (<https://systemd.io/JOURNAL_NATIVE_PROTOCOL/>): a datagram is an entry, with
//! a priority for `journalctl -p`, and a field for each value, such as `ROPEWALK_KIND`.

use nix::sys::stat::fstat;
use std::fmt::{Debug, Write as _};
use std::io;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;

/// journald's socket.
const SOCKET: &str = "/run/systemd/journal/socket";

/// Writes log messages to the journal.
pub(crate) struct Journal {
    socket: UnixDatagram,
    path: PathBuf,
}

/// The journal, if systemd has connected standard error to it (`JOURNAL_STREAM`, systemd.exec(5)).
pub(crate) fn of_standard_error() -> Option<Journal> {
    let stream = std::env::var("JOURNAL_STREAM").ok()?;
    let stderr = fstat(io::stderr()).ok()?;
    if stream != format!("{}:{}", stderr.st_dev, stderr.st_ino) {
        return None;
    }
    Journal::new(Path::new(SOCKET)).ok()
}

impl Journal {
    fn new(path: &Path) -> io::Result<Self> {
        // Entries are not sent by this one: a connection would end with a restart of journald.
        UnixDatagram::unbound()?.connect(path)?;
        Ok(Self { socket: UnixDatagram::unbound()?, path: path.to_owned() })
    }
}

impl<S: Subscriber> Layer<S> for Journal {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut fields = Fields::default();
        event.record(&mut fields);
        let entry = fields.entry(*event.metadata().level());
        // journald may be restarting, or the entry too long for a datagram.
        if self.socket.send_to(&entry, &self.path).is_err() {
            eprintln!("{}", fields.message());
        }
    }
}

/// The values of a message.
#[derive(Default)]
struct Fields {
    text: String,
    values: Vec<(&'static str, String)>,
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        match field.name() {
            "message" => self.text = format!("{value:?}"),
            name => self.values.push((name, format!("{value:?}"))),
        }
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.values.push((field.name(), value.to_owned()));
    }
}

impl Fields {
    fn value(&self, name: &str) -> Option<&str> {
        self.values.iter().find(|(other, _)| *other == name).map(|(_, value)| &**value)
    }

    /// The line for people: the names of peer and path, the message, its remedy, and other values.
    fn message(&self) -> String {
        let peer = self.value("name").or_else(|| self.value("peer").map(|key| key.get(..8).unwrap_or(key)));
        let names: Vec<_> = [peer, self.value("path")].into_iter().flatten().collect();
        let mut text = if names.is_empty() { String::new() } else { format!("{}: ", names.join(", ")) };
        text += &self.text;
        if let Some(remedy) = self.value("remedy") {
            let _ = write!(text, " ({remedy})");
        }
        let is_told = |name: &str| matches!(name, "kind" | "peer" | "name" | "path" | "remedy");
        for (name, value) in self.values.iter().filter(|(name, _)| !is_told(name)) {
            let _ = write!(text, " {name}={value}");
        }
        text
    }

    /// The entry, with the priorities of syslog(3).
    fn entry(&self, level: Level) -> Vec<u8> {
        let priority = match level {
            Level::ERROR => "3",
            Level::WARN => "4",
            Level::INFO => "6",
            _ => "7",
        };
        let mut entry = Vec::new();
        put(&mut entry, "PRIORITY", priority);
        put(&mut entry, "SYSLOG_IDENTIFIER", "ropewalk");
        put(&mut entry, "MESSAGE", &self.message());
        for (name, value) in &self.values {
            let name = name.to_ascii_uppercase().replace(|c: char| !c.is_ascii_alphanumeric(), "_");
            let name = if name == "NAME" { "PEER_NAME" } else { &name };
            put(&mut entry, &format!("ROPEWALK_{name}"), value);
        }
        entry
    }
}

/// Adds a field: in one line, or with its length if it has several.
fn put(entry: &mut Vec<u8>, name: &str, value: &str) {
    entry.extend_from_slice(name.as_bytes());
    if value.contains('\n') {
        entry.push(b'\n');
        entry.extend_from_slice(&(value.len() as u64).to_le_bytes());
    } else {
        entry.push(b'=');
    }
    entry.extend_from_slice(value.as_bytes());
    entry.push(b'\n');
}

#[cfg(test)]
mod tests {
    use super::*;
    use tracing_subscriber::prelude::*;

    #[test]
    fn an_entry_has_a_priority_the_names_and_a_field_for_each_value() {
        let path = std::env::temp_dir().join(format!("ropewalk-journal-{}", std::process::id()));
        let _ = std::fs::remove_file(&path);
        let receiver = UnixDatagram::bind(&path).unwrap();
        let subscriber = tracing_subscriber::registry().with(Journal::new(&path).unwrap());
        tracing::subscriber::with_default(subscriber, || {
            let (kind, peer, name, path) = ("path-down", Some("R1kDN1ki3Vq7"), None::<&str>, Some("eth1"));
            tracing::warn!(kind, peer, name, path, remedy = "plug it in", "{}", "no carrier");
            tracing::error!(interface = "rw0", "a\nb");
        });
        let mut buffer = [0; 1024];
        let mut receive = || {
            let len = receiver.recv(&mut buffer).unwrap();
            String::from_utf8_lossy(&buffer[..len]).into_owned()
        };
        assert_eq!(
            receive(),
            "PRIORITY=4\nSYSLOG_IDENTIFIER=ropewalk\nMESSAGE=R1kDN1ki, eth1: no carrier (plug it in)\n\
             ROPEWALK_KIND=path-down\nROPEWALK_PEER=R1kDN1ki3Vq7\nROPEWALK_PATH=eth1\nROPEWALK_REMEDY=plug it in\n"
        );
        let text = receive();
        assert!(text.starts_with("PRIORITY=3\n") && text.ends_with("ROPEWALK_INTERFACE=rw0\n"), "{text}");
        // Seventeen bytes follow their length.
        assert!(text.contains("MESSAGE\n\u{11}\0\0\0\0\0\0\0a\nb interface=rw0\n"), "{text:?}");
        std::fs::remove_file(path).unwrap();
    }
}
