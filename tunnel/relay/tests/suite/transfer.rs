//! Bytes arrive once and in order, whatever the channel does.

use crate::network::{Application, Bytes, CLEAN, Network, text};
use ropewalk_relay::{ConnectionId, Event, RelayConfig};
use testnet::LinkConfig;
use units::{Instant, RngStream, Span};

fn is_closed(network: &Network, id: ConnectionId) -> bool {
    network.applications(id).iter().all(|application| application.closed.is_some())
}

#[test]
fn both_byte_streams_arrive_in_order_over_any_channel_and_the_connection_ends() {
    for seed in testing::campaign(60).range() {
        let mut random = RngStream::named(seed, "a channel");
        let channel = LinkConfig {
            loss: random.unit() * 0.3,
            duplication: random.unit() * 0.2,
            delay: Span::from_millis(random.below(20)),
            reordering: Span::from_millis(1 + random.below(200)),
            ..CLEAN
        };
        let mut network = Network::new(seed, channel, RelayConfig { memory_bytes: 1 << 20, ..RelayConfig::default() });
        let lengths = [random.below(200_000) as usize, random.below(50_000) as usize];
        let ids: Vec<_> = (1..=3)
            .map(|number| network.connect(number, Application::sending(lengths[0]), Application::sending(lengths[1])))
            .collect();
        network.run_until(|network| ids.iter().all(|id| is_closed(network, *id)));
        for id in ids {
            for (application, sent) in network.applications(id).into_iter().zip([lengths[1], lengths[0]]) {
                assert!(application.received == text(sent), "seed {seed}");
                assert!(matches!(application.closed, Some(Event::Closed { reason: None, .. })), "seed {seed}");
            }
        }
        for host in &network.hosts {
            assert_eq!(host.relay.memory_used(), (0, 0), "all memory is free again, seed {seed}");
        }
    }
}

#[test]
fn without_loss_nothing_is_sent_twice() {
    let mut network = Network::new(1, CLEAN, RelayConfig::default());
    let id = network.connect(1, Application::sending(5_000_000), Application::sending(1000));
    network.run_until(|network| is_closed(network, id));
    assert_eq!(network.carried, 5_001_000);
}

/// Every second message of a window is lost, over a path with a satellite's RTT. The acknowledgements tell all gaps: the
/// handshake, the window and the repair take a round trip each, and so does the last message, which nothing follows.
#[test]
fn many_gaps_of_a_long_path_are_repaired_in_one_round_trip() {
    let delay = Span::from_millis(300);
    let window = Instant::ZERO + delay * 2;
    let mut network = Network::new(1, LinkConfig { delay, ..CLEAN }, RelayConfig::default());
    network.halved = (window, window + Span::from_millis(100));
    let id = network.connect(1, Application::sending(1_000_000), Application::sending(10));
    network.run_until(|network| network.applications(id)[1].received.len() == 1_000_000);
    assert!(network.now <= Instant::ZERO + delay * 2 * 4, "{:?}", network.now);
    assert!(network.carried <= 1_501_000, "half is sent twice: {} bytes", network.carried);
}

/// As before, and a tenth of all messages is lost, of those sent again and of the acknowledgements too. After the window 55 % are
/// missing, and each takes 1 / 0.9 messages: 0.61 MB, with a standard deviation of 9 messages. A timeout may add 64 KiB.
#[test]
fn a_loss_of_what_was_sent_again_makes_that_be_sent_once_more_and_nothing_else() {
    let delay = Span::from_millis(300);
    let window = Instant::ZERO + delay * 2;
    let channel = LinkConfig { delay, loss: 0.1, ..CLEAN };
    for seed in testing::campaign(10).range() {
        let mut network = Network::new(seed, channel, RelayConfig::default());
        network.halved = (window, window + Span::from_millis(100));
        let id = network.connect(1, Application::sending(1_000_000), Application::sending(10));
        network.run_until(|network| network.applications(id)[1].received.len() == 1_000_000);
        assert!(network.carried <= 1_611_000 + 4 * 9 * 1400 + 64 * 1024, "seed {seed}: {} bytes", network.carried);
    }
}

/// All of a window is lost, and nothing follows that would show it. 64 KiB are sent again after the timeout of 1.5 s. Their
/// acknowledgement, which tells of nothing later, makes the rest be sent again.
#[test]
fn a_window_that_is_lost_whole_is_sent_again_in_two_round_trips() {
    let delay = Span::from_millis(300);
    let window = Instant::ZERO + delay * 2;
    let mut network = Network::new(1, LinkConfig { delay, ..CLEAN }, RelayConfig::default());
    network.lost = (window, window + delay);
    let id = network.connect(1, Application::sending(4_000_000), Application::sending(10));
    network.run_until(|network| network.applications(id)[1].received.len() == 4_000_000);
    let end = window + Span::from_millis(1500) + delay * 2 * 2;
    assert!(network.now <= end, "{:?}", network.now);
    assert_eq!(network.carried, 8_000_010, "all is sent twice");
}

/// The receiver keeps 4096 later chunks of a window of 11 000, every second of which is lost. What it drops is sent again like
/// what was lost: the handshake, the window, the gaps, and what the acknowledgement of these shows take a round trip each.
#[test]
fn a_window_of_more_chunks_than_are_kept_is_repaired() {
    let delay = Span::from_millis(300);
    let window = Instant::ZERO + delay * 2;
    let mut network = Network::new(1, LinkConfig { delay, ..CLEAN }, RelayConfig::default());
    network.halved = (window, window + Span::from_millis(100));
    let id = network.connect(1, Application::sending(15_400_000), Application::sending(10));
    network.run_until(|network| network.applications(id)[1].received.len() == 15_400_000);
    assert!(network.now <= Instant::ZERO + delay * 2 * 4, "{:?}", network.now);
    let dropped = 15_400_000 - 4096 * 2 * 1400;
    assert!(network.carried <= 15_400_000 + 4096 * 1400 + dropped + 64 * 1024, "{} bytes", network.carried);
}

#[test]
fn an_outage_of_half_a_minute_is_survived() {
    let outage = (Instant::ZERO + Span::from_millis(100), Instant::ZERO + Span::from_secs(30));
    let mut network = Network::new(2, CLEAN.with_outage(outage.0, outage.1), RelayConfig::default());
    // 1 MB takes longer than the 100 ms before the outage: the window opens by round trips of 20 ms.
    let reads = Application { reads: 2_000, ..Application::sending(10) };
    let id = network.connect(1, Application::sending(1_000_000), reads);
    network.run_until(|network| is_closed(network, id));
    assert!(network.applications(id)[1].received == text(1_000_000));
    let end = network.now.since(outage.1);
    assert!(end < Span::from_secs(15), "the timeout is doubled three times, to 12 s: {end}");
}

#[test]
fn a_slow_reader_stalls_its_own_connection_only_and_holds_no_more_than_its_share() {
    let memory_bytes = 4 << 20;
    let mut network = Network::new(3, CLEAN, RelayConfig { memory_bytes, ..RelayConfig::default() });
    let slow: Vec<_> = (1..=8)
        .map(|number| network.connect(number, Application::sending(10_000_000), Application::default()))
        .collect();
    network.run_for(Span::from_secs(3));
    let fast = network.connect(100, Application::sending(500_000), Application::sending(0));
    let start = network.now;
    network.run_until(|network| is_closed(network, fast));
    assert!(network.applications(fast)[1].received == text(500_000));
    let duration = network.now.since(start);
    assert!(duration < Span::from_secs(3), "{duration}");
    for host in &network.hosts {
        assert!(host.max_memory.0 <= memory_bytes && host.max_memory.1 <= memory_bytes, "{:?}", host.max_memory);
    }
    assert!(slow.iter().all(|id| network.applications(*id)[1].received.is_empty()));
}

#[test]
fn connections_with_bulk_data_take_turns_and_one_that_begins_to_send_goes_first() {
    let mut network = Network::new(4, CLEAN, RelayConfig::default());
    let ids: Vec<_> =
        (0..11).map(|number| network.connect(number, Application::default(), Application::default())).collect();
    network.run_for(Span::from_millis(60));
    let now = network.now;
    let relay = &mut network.hosts[0].relay;
    ids[..10].iter().for_each(|id| relay.write(*id, Bytes(vec![0; 20_000])));
    let mut senders = || relay.poll_message(now, 1000).expect("data").header.connection;
    let turns: Vec<_> = (0..100).map(|_| senders()).collect();
    assert!(turns.iter().copied().eq((0..10).cycle().take(100)), "{turns:?}");
    relay.write(ids[10], Bytes(vec![0; 10]));
    assert_eq!(relay.poll_message(now, 1000).expect("data").header.connection, 10);
}

/// The reader begins to read during an outage, so that its window updates are lost while nothing is outstanding.
#[test]
fn a_lost_window_update_stalls_no_connection() {
    let s = |seconds| Instant::ZERO + Span::from_secs(seconds);
    let mut network = Network::new(2, CLEAN.with_outage(s(3), s(33)), RelayConfig::default());
    let reader = Application { reads: 0, ..Application::sending(10) };
    let id = network.connect(1, Application::sending(40_000_000), reader);
    network.run_for(Span::from_secs(10));
    let remote = ConnectionId { is_local: false, ..id };
    network.hosts[1].applications.get_mut(&remote).expect("opened").reads = u64::MAX;
    network.run_for(Span::from_secs(50));
    assert_eq!(network.applications(id)[1].received.len(), 40_000_000);
}

/// The window promises no more than memory admits.
#[test]
fn a_slow_reader_makes_nothing_be_sent_twice() {
    let config = RelayConfig { memory_bytes: 1 << 20, ..RelayConfig::default() };
    let mut network = Network::new(2, CLEAN, config);
    let reader = Application { reads: 100, ..Application::sending(10) };
    let id = network.connect(1, Application::sending(2_000_000), reader);
    network.run_until(|network| network.applications(id)[1].received.len() == 2_000_000);
    assert_eq!(network.carried, 2_000_010);
}
