//! What NetworkManager and ModemManager say of uplinks over D-Bus: a bus of the test's own, and a mock of both services.

use crate::causes::{DISTANT, make_distant, run};
use crate::tunnel_pair::{IPV4, TunnelPair};
use lab::testbed::{LEFT, RIGHT};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use testing::{Reason, eventually, skip};
use zbus::zvariant::OwnedObjectPath;
use zbus::{fdo, interface};

/// `NMMetered`: yes.
const YES: u32 = 1;
/// `NMMetered`: no.
const NO: u32 = 2;
/// `NMMetered`: a guess of no, as for any wired device.
const GUESS_NO: u32 = 4;

/// A bus that ends with this value.
struct Bus(Child);

impl Drop for Bus {
    fn drop(&mut self) {
        let _ = self.0.kill().and_then(|()| self.0.wait());
    }
}

struct NetworkManager;

#[interface(name = "org.freedesktop.NetworkManager")]
impl NetworkManager {
    fn get_device_by_ip_iface(&self, name: &str) -> fdo::Result<OwnedObjectPath> {
        let is_known = ["p0", "p1", "p2"].contains(&name);
        let path = format!("/org/freedesktop/NetworkManager/Devices/{name}").try_into();
        path.ok().filter(|_| is_known).ok_or_else(|| fdo::Error::Failed("no such device".into()))
    }
}

struct Device(Arc<AtomicU32>);

#[interface(name = "org.freedesktop.NetworkManager.Device")]
impl Device {
    #[zbus(property)]
    fn metered(&self) -> u32 {
        self.0.load(Ordering::Relaxed)
    }
}

struct Modem;

#[interface(name = "org.freedesktop.ModemManager1.Modem")]
impl Modem {
    /// A control port, the network devices p1 and p2, and a port of another type with the name of p3.
    #[zbus(property)]
    fn ports(&self) -> Vec<(String, u32)> {
        [("cdc-wdm0", 6), ("p1", 2), ("p2", 2), ("p3", 3)].map(|(name, kind)| (name.to_owned(), kind)).into()
    }
}

/// Serves both; p0, p1 and p2 are metered as `metered` says.
async fn serve(address: &str, metered: &[Arc<AtomicU32>; 3]) -> zbus::Result<zbus::Connection> {
    let manager = "/org/freedesktop/ModemManager1";
    let mut builder = zbus::connection::Builder::address(address)?
        .serve_at("/org/freedesktop/NetworkManager", NetworkManager)?
        .serve_at(manager, fdo::ObjectManager)?
        .serve_at(format!("{manager}/Modem/0"), Modem)?;
    for (number, value) in metered.iter().enumerate() {
        let path = format!("/org/freedesktop/NetworkManager/Devices/p{number}");
        builder = builder.serve_at(path, Device(Arc::clone(value)))?;
    }
    builder.name("org.freedesktop.NetworkManager")?.name("org.freedesktop.ModemManager1")?.build().await
}

fn start_bus(socket: &Path) -> Option<Bus> {
    let address = format!("--address=unix:path={}", socket.display());
    let mut command = Command::new("dbus-daemon");
    command.args(["--session", "--nofork", "--nopidfile", &address]).stdin(Stdio::null()).stderr(Stdio::null());
    let Ok(child) = command.spawn() else {
        skip(Reason::Missing, "dbus-daemon is not installed");
        return None;
    };
    let bus = Bus(child);
    assert!(eventually(|| socket.exists()), "the bus does not start");
    Some(bus)
}

#[test]
fn network_manager_and_modem_manager_tell_which_uplinks_are_metered() {
    let Some(mut pair) = TunnelPair::configured(IPV4, &["", "", "", ""]) else { return };
    let socket = pair.folder(LEFT).join("bus");
    let Some(bus) = start_bus(&socket) else { return };
    let address = format!("unix:path={}", socket.display());
    let metered = [YES, GUESS_NO, NO].map(|value| Arc::new(AtomicU32::new(value)));
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let _services = runtime.block_on(serve(&address, &metered)).unwrap();

    make_distant(&pair);
    pair.edit(LEFT, |text| {
        let text = text[..text.find("\n[[path]]").unwrap()].to_owned();
        text.replacen("\n\n[[peer]]\n", &format!("\nuplinks = \"auto\"\n\n[[peer]]\nendpoint = \"{DISTANT}\"\n"), 1)
    });
    for link in 0..4 {
        let gateway = pair.testbed.v4(link, RIGHT);
        run(&pair, LEFT, &format!("ip route add default via {gateway} dev p{link} metric {}", link + 1));
    }
    pair.start(RIGHT);
    pair.start_with_bus(LEFT, &address);
    pair.wait_until_up(LEFT);
    let found = || {
        let mut paths: Vec<_> =
            pair.status(LEFT).peers[0].paths.iter().map(|path| (path.name.clone(), path.metered)).collect();
        paths.sort();
        paths.into_iter().map(|(_, is_metered)| is_metered).collect::<Vec<_>>()
    };
    // NetworkManager's "no" goes before what ModemManager tells, its guess of "no" does not.
    assert!(eventually(|| found() == [true, true, false, false]), "{:?}", found());
    metered[0].store(NO, Ordering::Relaxed);
    assert!(eventually(|| found() == [false, true, false, false]), "{:?}", found());
    // Without its bus the daemon keeps what it knows.
    drop(bus);
    run(&pair, LEFT, "ip route del default dev p3");
    assert!(eventually(|| pair.path(LEFT, 3).cause.is_some()), "{:#?}", pair.status(LEFT));
    assert_eq!(found()[..3], [false, true, false]);
}
