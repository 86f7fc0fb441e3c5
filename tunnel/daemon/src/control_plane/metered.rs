//! Asks NetworkManager and ModemManager over D-Bus whether a device's traffic costs money.
//!
//! Neither is started for this, and both are optional, as is the bus. A build without the feature `dbus` (for routers,
//! which have neither) asks nothing.

use super::uplinks::DefaultRoutes;
use std::collections::BTreeMap;

/// Whether the traffic of devices costs money, for devices about which the system reports it.
pub(super) type MeteredDevices = BTreeMap<String, bool>;

#[cfg(feature = "dbus")]
pub(super) use bus::SystemBus;

/// No bus.
#[cfg(not(feature = "dbus"))]
#[derive(Debug, Default)]
pub(super) struct SystemBus(MeteredDevices);

#[cfg(not(feature = "dbus"))]
impl SystemBus {
    /// Nothing is known.
    #[allow(clippy::unused_async, reason = "as with a bus")]
    pub(super) async fn metered(&mut self, _: &DefaultRoutes) -> &MeteredDevices {
        &self.0
    }
}

#[cfg(feature = "dbus")]
mod bus {
    use super::{DefaultRoutes, MeteredDevices};
    use std::collections::HashMap;
    use std::time::{Duration, Instant};
    use tracing::debug;
    use zbus::zvariant::{OwnedObjectPath, OwnedValue};
    use zbus::{Connection, Proxy, fdo};

    /// The time for all answers of the bus.
    const TIMEOUT: Duration = Duration::from_secs(1);
    /// The wait after a bus that did not answer.
    const RETRY: Duration = Duration::from_secs(60);

    const NETWORK_MANAGER: &str = "org.freedesktop.NetworkManager";
    const MODEM_MANAGER: &str = "org.freedesktop.ModemManager1";
    /// `NMMetered` of NetworkManager: yes, no, and a guess of yes. A guess of no, and "unknown", are ignored.
    const NM_METERED_YES: u32 = 1;
    const NM_METERED_NO: u32 = 2;
    const NM_METERED_GUESS_YES: u32 = 3;
    /// `MMModemPortType` of ModemManager: a network device.
    const MM_PORT_NET: u32 = 2;

    /// The system bus, and its latest answers.
    #[derive(Debug, Default)]
    pub(crate) struct SystemBus {
        connection: Option<Connection>,
        retry: Option<Instant>,
        answers: MeteredDevices,
    }

    impl SystemBus {
        /// Asks about the devices of these routes, which takes at most [`TIMEOUT`]. If the bus does not answer, its
        /// earlier answers stay valid.
        pub(crate) async fn metered(&mut self, devices: &DefaultRoutes) -> &MeteredDevices {
            let now = Instant::now();
            if devices.is_empty() || self.retry.is_some_and(|retry| now < retry) {
                return &self.answers;
            }
            let answers = tokio::time::timeout(TIMEOUT, self.ask(devices)).await;
            match answers
                .map_err(|_| zbus::Error::InputOutput(std::sync::Arc::new(std::io::ErrorKind::TimedOut.into())))
            {
                Ok(Ok(answers)) => (self.answers, self.retry) = (answers, None),
                Ok(Err(error)) | Err(error) => {
                    debug!("the system bus does not report metered devices: {error}");
                    (self.connection, self.retry) = (None, Some(now + RETRY));
                }
            }
            &self.answers
        }

        async fn ask(&mut self, devices: &DefaultRoutes) -> zbus::Result<MeteredDevices> {
            let connection = match &self.connection {
                Some(connection) => connection,
                None => self.connection.insert(Connection::system().await?),
            };
            let bus = fdo::DBusProxy::new(connection).await?;
            let mut answers = MeteredDevices::new();
            if bus.name_has_owner(MODEM_MANAGER.try_into()?).await? {
                answers.extend(modem_ports(connection).await?.into_iter().map(|port| (port, true)));
            }
            if bus.name_has_owner(NETWORK_MANAGER.try_into()?).await? {
                for device in devices.keys() {
                    // It does not know every device.
                    if let Ok(Some(is_metered)) = network_manager(connection, device).await {
                        answers.insert(device.clone(), is_metered);
                    }
                }
            }
            Ok(answers)
        }
    }

    /// NetworkManager's property `Metered` of a device.
    async fn network_manager(connection: &Connection, device: &str) -> zbus::Result<Option<bool>> {
        let manager =
            Proxy::new(connection, NETWORK_MANAGER, "/org/freedesktop/NetworkManager", NETWORK_MANAGER).await?;
        let path: OwnedObjectPath = manager.call("GetDeviceByIpIface", &(device,)).await?;
        let interface = "org.freedesktop.NetworkManager.Device";
        let device = Proxy::new(connection, NETWORK_MANAGER, path, "org.freedesktop.DBus.Properties").await?;
        let metered: OwnedValue = device.call("Get", &(interface, "Metered")).await?;
        Ok(match u32::try_from(metered)? {
            NM_METERED_YES | NM_METERED_GUESS_YES => Some(true),
            NM_METERED_NO => Some(false),
            _ => None,
        })
    }

    /// The network devices of modems: the property `Ports` of each, a list of names and types.
    async fn modem_ports(connection: &Connection) -> zbus::Result<Vec<String>> {
        let interface = "org.freedesktop.DBus.ObjectManager";
        let manager = Proxy::new(connection, MODEM_MANAGER, "/org/freedesktop/ModemManager1", interface).await?;
        type Interfaces = HashMap<String, HashMap<String, OwnedValue>>;
        let objects: HashMap<OwnedObjectPath, Interfaces> = manager.call("GetManagedObjects", &()).await?;
        let modems =
            objects.into_values().filter_map(|mut interfaces| interfaces.remove("org.freedesktop.ModemManager1.Modem"));
        let ports =
            modems.filter_map(|mut modem| Vec::<(String, u32)>::try_from(modem.remove("Ports")?).ok()).flatten();
        Ok(ports.filter(|(_, port_type)| *port_type == MM_PORT_NET).map(|(name, _)| name).collect())
    }
}
