//! Tests of files that root opens in a folder of the daemon's user, while that user exchanges them for links.

use crate::config::{EnrolledPeer, PeersFile};
use crate::control_plane::listen_unix;
use crate::dashboard::HistoryFile;
use crate::keys;
use crate::quota::QuotaKeeper;
use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, RenameFlags, renameat2};
use nix::unistd::{Uid, User, fchown};
use std::fs::{self, File};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use testing::{Reason, skip};

/// Number of starts during which the file is exchanged. If the owner were changed by path, the target's owner would
/// change in at least one of ten starts.
const DISTURBED_STARTS: usize = 300;
/// Each test needs two processors.
static LOCK: Mutex<()> = Mutex::new(());
const CONTENTS: &str = "of root alone\n";

/// A folder of the daemon's user, and in its parent folder a file of root.
struct Site {
    parent: PathBuf,
    user: User,
    /// Exchanges that were made.
    exchanges: AtomicU64,
    has_ended: AtomicBool,
    _lock: MutexGuard<'static, ()>,
}

impl Site {
    /// `None`, and the test is skipped, if this is not root.
    fn new(name: &str) -> Option<Self> {
        if !Uid::effective().is_root() {
            skip(Reason::Missing, "root, whose file is to stay its own");
            return None;
        }
        let lock = LOCK.lock().unwrap_or_else(PoisonError::into_inner);
        let parent = std::env::temp_dir().join(format!("ropewalk-planted-{name}-{}", std::process::id()));
        fs::create_dir_all(parent.join("state")).unwrap();
        let user = User::from_name("nobody").unwrap().unwrap();
        fchown(File::open(parent.join("state")).unwrap(), Some(user.uid), Some(user.gid)).unwrap();
        let site = Self { parent, user, exchanges: AtomicU64::new(0), has_ended: AtomicBool::new(false), _lock: lock };
        fs::write(site.target(), CONTENTS).unwrap();
        File::open(site.target()).unwrap().set_permissions(PermissionsExt::from_mode(0o600)).unwrap();
        symlink(site.target(), site.file("link")).unwrap();
        Some(site)
    }

    fn target(&self) -> PathBuf {
        self.parent.join("target")
    }

    fn file(&self, name: &str) -> PathBuf {
        self.parent.join("state").join(name)
    }

    /// Exchanges the file and the link without a pause. If there is no file, plants a link.
    fn exchange(&self, file: &Path) {
        while !self.has_ended.load(Relaxed) {
            match renameat2(AT_FDCWD, &self.file("link"), AT_FDCWD, file, RenameFlags::RENAME_EXCHANGE) {
                Ok(()) => {}
                Err(Errno::ENOENT) => drop(symlink(self.target(), file)),
                Err(errno) => panic!("{errno}"),
            }
            self.exchanges.fetch_add(1, Relaxed);
        }
    }

    /// Starts often while `opened` is exchanged for a link, and then once undisturbed, which leaves `file`.
    fn attack(&self, opened: &Path, file: &Path, mut start: impl FnMut()) {
        thread::scope(|scope| {
            let _end = EndOnDrop(&self.has_ended);
            scope.spawn(|| self.exchange(opened));
            let mut disturbed = 0;
            while disturbed < DISTURBED_STARTS {
                let before = self.exchanges.load(Relaxed);
                start();
                disturbed += usize::from(self.exchanges.load(Relaxed) != before);
                self.assert_untouched();
            }
        });
        [opened, file].into_iter().for_each(|name| drop(fs::remove_file(name)));
        start();
        let owner = fs::symlink_metadata(file).unwrap();
        assert_eq!((owner.uid(), owner.gid()), (self.user.uid.as_raw(), self.user.gid.as_raw()), "it is the user's");
    }

    fn assert_untouched(&self) {
        let metadata = fs::symlink_metadata(self.target()).unwrap();
        let access = (metadata.uid(), metadata.gid(), metadata.mode() & 0o7777);
        assert_eq!((access, fs::read_to_string(self.target()).unwrap().as_str()), ((0, 0, 0o600), CONTENTS));
    }
}

/// Ends the exchanges, also after a failure.
struct EndOnDrop<'a>(&'a AtomicBool);

impl Drop for EndOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.parent);
    }
}

#[test]
fn an_exchange_of_the_history_for_a_link_gives_no_file_of_roots_away() {
    let Some(site) = Site::new("history") else { return };
    let file = site.file("rw0.history");
    site.attack(&file, &file, || drop(HistoryFile::open(&file, Some(&site.user))));
}

#[test]
fn an_exchange_of_the_quotas_for_a_link_gives_no_file_of_roots_away() {
    let Some(site) = Site::new("quota") else { return };
    let file = site.file("rw0.quota");
    site.attack(&file, &file, || drop(QuotaKeeper::open(Some(file.clone()), true, Some(&site.user))));
}

#[test]
fn an_exchange_of_a_damaged_file_for_a_link_gives_no_file_of_roots_away() {
    let Some(site) = Site::new("damaged") else { return };
    let file = site.file("rw0.history");
    let damaged_and_opened = || {
        let _ = fs::write(site.file("letter"), "a letter").and_then(|()| fs::rename(site.file("letter"), &file));
        drop(HistoryFile::open(&file, Some(&site.user)));
    };
    site.attack(&file, &file, damaged_and_opened);
}

#[test]
fn an_exchange_of_the_dashboards_socket_for_a_link_gives_no_file_of_roots_away() {
    let Some(site) = Site::new("socket") else { return };
    let file = site.file("rw0.dashboard");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let _runtime = runtime.enter();
    site.attack(&file, &file, || drop(listen_unix(&file, Some(&site.user))));
}

#[test]
fn an_exchange_of_the_new_peers_file_for_a_link_gives_no_file_of_roots_away() {
    let Some(site) = Site::new("peers") else { return };
    let file = site.file("peers.toml");
    let peer = EnrolledPeer {
        name: "laptop".into(),
        public_key: keys::pubkey(&keys::genkey()).unwrap().parse().unwrap(),
        preshared_key: None,
        allowed_ips: vec!["10.77.0.2/32".parse().unwrap()],
        token_expires: None,
        expires: None,
    };
    let owner = (site.user.uid.as_raw(), site.user.gid.as_raw());
    let write = || {
        // The text may have been written to the link's target.
        let _ = fs::remove_file(&file);
        let mut peers = PeersFile::open(&file).unwrap();
        peers.peers = vec![peer.clone()];
        let _ = peers.write(Some(owner));
    };
    site.attack(&site.file("peers.toml.new"), &file, write);
}
