//! Opening, refusing, half-closing and resetting connections.

use crate::network::{Application, CLEAN, Network, addresses, text};
use ropewalk_relay::{Body, ConnectionId, Event, RelayConfig, ResetReason};
use testnet::LinkConfig;
use units::Span;

#[test]
fn a_connection_is_accepted_only_when_the_server_has_accepted() {
    let mut network = Network::new(1, CLEAN, RelayConfig::default());
    network.hosts[1].accepts = false;
    let id = network.connect(7, Application::sending(10), Application::sending(10));
    network.run_for(Span::from_millis(500));
    let status = |network: &Network| network.hosts[0].relay.connections().next().expect("one").1;
    assert!(!status(&network).is_accepted);
    let remote_id = ConnectionId { is_local: false, ..id };
    assert_eq!(network.hosts[1].opened, [(remote_id, addresses(7))]);
    let now = network.now;
    network.hosts[1].relay.accept(now, remote_id);
    network.run_for(Span::from_millis(15));
    assert!(status(&network).is_accepted);
}

#[test]
fn every_reason_of_a_refusal_reaches_the_client() {
    for reason in [ResetReason::Refused, ResetReason::Unreachable, ResetReason::TimedOut] {
        let mut network = Network::new(1, CLEAN, RelayConfig::default());
        network.hosts[1].accepts = false;
        let id = network.connect(7, Application::sending(10), Application::default());
        network.run_for(Span::from_millis(50));
        let now = network.now;
        network.hosts[1].relay.reset(now, ConnectionId { is_local: false, ..id }, reason);
        network.run_for(Span::from_millis(50));
        assert_eq!(network.applications(id)[0].closed, Some(Event::Closed { id, reason: Some(reason) }));
        assert_eq!(network.hosts.each_ref().map(|host| host.relay.connections().count()), [0, 0]);
    }
}

#[test]
fn a_server_answers_after_its_client_has_closed_its_direction() {
    let mut network = Network::new(1, CLEAN, RelayConfig::default());
    let server = Application { reads: u64::MAX, ..Application::default() };
    let id = network.connect(7, Application::sending(1000), server);
    network.run_until(|network| network.applications(id)[1].is_at_end);
    assert!(network.applications(id)[1].received == text(1000));
    assert!(network.applications(id)[0].closed.is_none(), "half closed");
    let remote_id = ConnectionId { is_local: false, ..id };
    let server = network.hosts[1].applications.get_mut(&remote_id).expect("the server");
    (server.to_send, server.finishes) = (text(5000).into(), true);
    network.run_until(|network| network.applications(id).iter().all(|application| application.closed.is_some()));
    assert!(network.applications(id)[0].received == text(5000));
}

#[test]
fn a_reset_ends_the_connection_at_the_other_end_even_if_it_is_lost() {
    let mut network = Network::new(1, CLEAN, RelayConfig::default());
    let id = network.connect(7, Application { reads: u64::MAX, ..Application::default() }, Application::default());
    network.run_for(Span::from_millis(100));
    let now = network.now;
    let relay = &mut network.hosts[1].relay;
    relay.reset(now, ConnectionId { is_local: false, ..id }, ResetReason::Reset);
    let lost = relay.poll_message(now, 0).expect("the reset");
    assert_eq!(lost.header.body, Body::Reset(ResetReason::Reset));
    // Nothing is sent: the probe of an idle connection finds out.
    network.run_for(Span::from_secs(301));
    assert_eq!(network.applications(id)[0].closed, Some(Event::Closed { id, reason: Some(ResetReason::Reset) }));
}

#[test]
fn without_an_answer_the_connection_times_out() {
    let channel = LinkConfig { loss: 1.0, ..CLEAN };
    let mut network = Network::new(1, channel, RelayConfig::default());
    let id = network.connect(7, Application::default(), Application::default());
    // Open messages are sent at 0, 1, 3, 7, 15, 31 and 63 s, and the last one is waited for until 127 s.
    network.run_for(Span::from_secs(126));
    assert_eq!(network.applications(id)[0].closed, None);
    network.run_for(Span::from_secs(2));
    assert_eq!(network.applications(id)[0].closed, Some(Event::Closed { id, reason: Some(ResetReason::TimedOut) }));
}

#[test]
fn too_many_connections_are_not_relayed() {
    let config = RelayConfig { max_connections: 3, ..RelayConfig::default() };
    let mut network = Network::new(1, CLEAN, config);
    for number in 0..3 {
        network.connect(number, Application::default(), Application::default());
    }
    assert_eq!(network.hosts[0].relay.open(network.now, addresses(9)), None);
    network.run_for(Span::from_millis(50));
    // The far end's table is full as well: what the near end opens after a restart is refused.
    network.hosts[0].relay.reset_all();
    while network.hosts[0].relay.poll_event().is_some() {}
    let id = network.connect(10, Application::default(), Application::default());
    network.run_for(Span::from_millis(50));
    let closed = Event::Closed { id, reason: Some(ResetReason::NotRelayed) };
    assert_eq!(network.applications(id)[0].closed, Some(closed));
}

#[test]
fn all_connections_are_closed_when_the_session_is_lost() {
    let mut network = Network::new(1, CLEAN, RelayConfig::default());
    let ids = [1, 2].map(|number| network.connect(number, Application::default(), Application::default()));
    network.run_for(Span::from_millis(50));
    network.hosts[0].relay.reset_all();
    network.run_for(Span::from_millis(5));
    for id in ids {
        assert_eq!(network.applications(id)[0].closed, Some(Event::Closed { id, reason: Some(ResetReason::Reset) }));
    }
    assert_eq!(network.hosts[0].relay.memory_used(), (0, 0));
}
