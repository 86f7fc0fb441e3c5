//! The `peers-file`: what is read of it, its errors, and how enrolment changes it.

use ropewalk_daemon::config::{self, ClientIdentity, EnrolledPeer, Enrolment, PeersFile, TunnelConfig};
use ropewalk_daemon::keys;
use seal::PublicKey;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

/// A folder with a configuration that names `peers.toml`; removed when dropped.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str, own_peer: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("ropewalk-peers-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        let interface = "[interface]\naddress = '10.77.0.1/24'\nprivate-key = 'KEY'\npeers-file = 'peers.toml'\n";
        let text = interface.replace("KEY", &keys::genkey()) + own_peer;
        let folder = Self(folder);
        folder.write("rw0.toml", &text);
        folder
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.0.join(name), text).unwrap();
        fs::set_permissions(self.0.join(name), fs::Permissions::from_mode(0o600)).unwrap();
    }

    fn load(&self) -> Result<TunnelConfig, String> {
        config::load(&self.0.join("rw0.toml")).map_err(|errors| errors.to_string())
    }

    fn peers_file(&self) -> PathBuf {
        self.0.join("peers.toml")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn new_key() -> PublicKey {
    keys::pubkey(&keys::genkey()).unwrap().parse().unwrap()
}

fn peer(name: &str, number: u8, token_expires: Option<u64>) -> EnrolledPeer {
    let allowed_ips = vec![format!("10.77.0.{number}/32").parse().unwrap()];
    let preshared_key = Some(keys::genpsk().parse().unwrap());
    EnrolledPeer { name: name.into(), public_key: new_key(), preshared_key, allowed_ips, token_expires, expires: None }
}

#[test]
fn a_missing_file_has_no_peers_and_a_written_one_those_whose_token_has_not_expired() {
    let folder = Folder::new("written", "");
    assert!(folder.load().unwrap().peers.is_empty());
    let peers = vec![peer("own", 2, None), peer("expired", 3, Some(1)), peer("waiting", 4, Some(u64::from(u32::MAX)))];
    {
        let mut file = PeersFile::open(&folder.peers_file()).unwrap();
        file.peers.clone_from(&peers);
        file.write(None).unwrap();
    }
    assert_eq!(PeersFile::open(&folder.peers_file()).unwrap().peers, peers);
    assert_eq!(fs::metadata(folder.peers_file()).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(fs::read_dir(&folder.0).unwrap().count(), 2, "no temporary file is left");
    let names: Vec<_> = folder.load().unwrap().peers.into_iter().map(|peer| peer.name.unwrap()).collect();
    assert_eq!(names, ["own", "waiting"]);
}

#[test]
fn a_client_whose_time_is_over_is_no_peer_and_its_end_is_kept() {
    let folder = Folder::new("ends", "");
    let ends = [None, Some(1), Some(u64::from(u32::MAX))];
    let peers: Vec<_> = ["never", "over", "later"]
        .iter()
        .zip(2..)
        .zip(ends)
        .map(|((name, number), expires)| EnrolledPeer { expires, ..peer(name, number, None) })
        .collect();
    {
        let mut file = PeersFile::open(&folder.peers_file()).unwrap();
        file.peers.clone_from(&peers);
        file.write(None).unwrap();
    }
    assert_eq!(PeersFile::open(&folder.peers_file()).unwrap().peers, peers);
    let found = folder.load().unwrap().peers;
    let names: Vec<_> = found.iter().map(|peer| (peer.name.clone().unwrap(), peer.expires)).collect();
    assert_eq!(names, [("never".to_owned(), None), ("later".to_owned(), ends[2])]);
}

#[test]
fn a_client_changes_its_own_key_to_a_free_one_and_neither_a_token_nor_a_revoked_client_does() {
    let folder = Folder::new("rotated", "");
    let mut file = PeersFile::open(&folder.peers_file()).unwrap();
    file.peers = vec![peer("own", 2, None), peer("waiting", 3, Some(u64::from(u32::MAX)))];
    let [own, waiting] = [0, 1].map(|index| file.peers[index].public_key);
    let (new, server) = (new_key(), new_key());
    let mut rotate = |current, key| match file.rotate(current, &named(key), &[server]).unwrap() {
        Enrolment::Enrolled(name, _) => name,
        Enrolment::Refused(reason) => reason,
    };
    assert!(rotate(own, waiting).contains("in use") && rotate(own, server).contains("in use"));
    assert!(rotate(waiting, new).contains("revoked") && rotate(new_key(), new).contains("revoked"));
    assert_eq!(rotate(own, new), "own");
    assert!(rotate(own, new_key()).contains("revoked"), "the earlier key is nobody's");
    drop(file);
    assert_eq!(PeersFile::open(&folder.peers_file()).unwrap().peers[0].public_key, new);
}

#[test]
fn an_error_names_the_file_the_line_and_the_key_and_shows_no_secret() {
    let (public, secret) = (new_key(), keys::genpsk());
    let own = format!("[[peer]]\npublic-key = '{public}'\nallowed-ips = '10.77.0.9/32'\n");
    let folder = Folder::new("wrong", &own);
    let peer = format!("[[peer]]\nname = 'laptop'\npublic-key = '{}'\nallowed-ips = '10.77.0.2/32'\n", new_key());
    for (text, phrases) in [
        (peer.replace("laptop", "a b"), ["peers.toml:2", "letters"]),
        (peer.replace("laptop", "\\u001b[31m").replace('\'', "\""), ["peers.toml:2", "letters"]),
        (peer.replace("10.77.0.2/32", "10.77.0.9/32"), ["peers.toml:4", "belongs to another peer"]),
        (
            format!("[[peer]]\npublic-key = '{public}'\nallowed-ips = []\n"),
            ["peers.toml:2", "another peer has this key"],
        ),
        (peer.replace("name", "nmae"), ["peers.toml:2", "nmae"]),
        (format!("{peer}preshared-keey = '{}'\n", *secret), ["peers.toml:5", "preshared-keey"]),
        ("[[peer".to_owned(), ["peers.toml:1", "not TOML"]),
    ] {
        folder.write("peers.toml", &text);
        let error = folder.load().unwrap_err();
        assert!(phrases.iter().all(|phrase| error.contains(phrase)), "{text}: {error}");
        assert!(!error.contains(secret.as_str()), "{error}");
    }
    folder.write("peers.toml", &peer);
    assert_eq!(folder.load().unwrap().peers.len(), 2);
    fs::set_permissions(folder.peers_file(), fs::Permissions::from_mode(0o644)).unwrap();
    assert!(folder.load().unwrap_err().contains("chmod 600"));
}

/// A client of an earlier version, which names a public key alone.
fn named(public_key: PublicKey) -> ClientIdentity {
    ClientIdentity { public_key, preshared_key: None, lans: Vec::new() }
}

#[test]
fn a_new_preshared_key_replaces_that_of_the_token_and_without_one_it_stays() {
    for new in [Some(keys::genpsk().parse().unwrap()), None] {
        let folder = Folder::new(&format!("psk-{}", new.is_some()), "");
        let mut of_token = peer("one", 2, Some(100));
        of_token.preshared_key = Some(keys::genpsk().parse().unwrap());
        let mut file = PeersFile::open(&folder.peers_file()).unwrap();
        file.peers = vec![of_token.clone()];
        let client = ClientIdentity { preshared_key: new.clone(), ..named(new_key()) };
        assert!(matches!(file.enrol(of_token.public_key, &client, &[], 99), Ok(Enrolment::Enrolled(..))));
        drop(file);
        let kept = PeersFile::open(&folder.peers_file()).unwrap().peers.remove(0).preshared_key;
        assert!(kept.is_some() && kept == new.or(of_token.preshared_key));
    }
}

#[test]
fn a_token_s_key_is_replaced_once_within_its_time_by_a_key_that_nobody_has() {
    let folder = Folder::new("enrol", "");
    let (one, other) = (peer("one", 2, Some(100)), peer("other", 3, None));
    let (current, own, taken) = (one.public_key, new_key(), new_key());
    let mut file = PeersFile::open(&folder.peers_file()).unwrap();
    file.peers = vec![one, other.clone()];
    let refused = |outcome: std::io::Result<Enrolment>, phrase: &str| match outcome.unwrap() {
        Enrolment::Refused(reason) => assert!(reason.contains(phrase), "{reason}"),
        Enrolment::Enrolled(name, _) => panic!("{name} is enrolled, not: {phrase}"),
    };
    refused(file.enrol(current, &named(own), &[], 100), "expired");
    refused(file.enrol(new_key(), &named(own), &[], 99), "revoked");
    refused(file.enrol(other.public_key, &named(own), &[], 99), "used");
    refused(file.enrol(current, &named(current), &[], 99), "in use");
    refused(file.enrol(current, &named(other.public_key), &[], 99), "in use");
    refused(file.enrol(current, &named(taken), &[taken], 99), "in use");
    assert!(!folder.peers_file().exists(), "nothing was written");
    assert_eq!(file.enrol(current, &named(own), &[taken], 99).unwrap(), Enrolment::Enrolled("one".into(), Vec::new()));
    refused(file.enrol(current, &named(new_key()), &[], 99), "revoked");
    assert_eq!(
        file.enrol(own, &named(own), &[], 99).unwrap(),
        Enrolment::Enrolled("one".into(), Vec::new()),
        "a repetition"
    );
    drop(file);
    let written = PeersFile::open(&folder.peers_file()).unwrap().peers.clone();
    assert_eq!((written[0].public_key, written[0].token_expires, &written[1]), (own, None, &other));
}

#[test]
fn what_another_user_planted_in_its_place_is_neither_read_nor_waited_for() {
    let folder = Folder::new("planted", "");
    let file = folder.peers_file();
    let error = || PeersFile::open(&file).unwrap_err().to_string();
    std::os::unix::fs::symlink("/etc/passwd", &file).unwrap();
    assert!(!error().contains("root:"), "a symbolic link is not followed");
    fs::remove_file(&file).unwrap();
    // A pipe without a writer, at which an ordinary open would wait.
    assert!(std::process::Command::new("mkfifo").arg(&file).status().unwrap().success());
    assert!(error().contains("regular file"));
    fs::remove_file(&file).unwrap();
    fs::File::create(&file).unwrap().set_len(300 << 20).unwrap();
    assert!(error().contains("bytes"));
}

#[test]
fn a_lock_that_a_reader_can_take_stops_no_writer_and_a_writers_lock_stops_no_revocation() {
    let folder = Folder::new("lock", "");
    let file = folder.peers_file();
    folder.write("peers.toml", "");
    for readable in [&folder.0, &file] {
        let readable = fs::File::open(readable).unwrap();
        readable.lock().unwrap();
        assert!(PeersFile::try_open(&file).unwrap().is_some(), "every reader could");
    }
    let held = PeersFile::open(&file).unwrap();
    let mode = fs::metadata(folder.0.join("peers.toml.lock")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600, "a reader cannot open it");
    assert!(PeersFile::try_open(&file).unwrap().is_none());
    assert!(PeersFile::open(&file).unwrap_err().to_string().contains("lock"));
    let mut forced = PeersFile::open_without_lock(&file).unwrap();
    forced.peers = vec![peer("laptop", 2, None)];
    forced.write(None).unwrap();
    drop(held);
    assert_eq!(PeersFile::open(&file).unwrap().peers, forced.peers);
}

#[test]
fn networks_behind_a_client_are_kept_with_its_key_and_told_again() {
    let folder = Folder::new("lans", "");
    let one = peer("one", 2, Some(100));
    let (current, own, lan) = (one.public_key, new_key(), "192.168.50.0/24".parse().unwrap());
    let mut file = PeersFile::open(&folder.peers_file()).unwrap();
    file.peers = vec![one.clone()];
    let enrolled = Enrolment::Enrolled("one".into(), vec![lan]);
    assert_eq!(file.enrol(current, &ClientIdentity { lans: vec![lan], ..named(own) }, &[], 99).unwrap(), enrolled);
    assert_eq!(
        file.enrol(own, &ClientIdentity { lans: vec!["10.9.0.0/24".parse().unwrap()], ..named(own) }, &[], 99).unwrap(),
        enrolled,
        "a repetition"
    );
    drop(file);
    let written = PeersFile::open(&folder.peers_file()).unwrap().peers.clone();
    assert_eq!(written[0].allowed_ips, [one.allowed_ips.clone(), vec![lan]].concat());
}
