//! `ropewalk check --live`, of tunnels that are up and of such that are not.

use crate::causes::{DISTANT, LINKS, make_distant, run};
use crate::tunnel_pair::{IPV4, TunnelPair};
use lab::testbed::{LEFT, RIGHT};
use testing::eventually;

/// Exit code and standard output on a host.
fn check(pair: &TunnelPair, host: usize) -> (Option<i32>, String) {
    let file = pair.folder(host).join("rw0.toml");
    let output = pair.command(host).args(["check", "--live"]).arg(file).output().unwrap();
    (output.status.code(), String::from_utf8(output.stdout).unwrap())
}

#[test]
fn problems_of_a_tunnel_that_is_not_up_are_found_with_remedies() {
    let Some(mut pair) = TunnelPair::configured(IPV4, &LINKS) else { return };
    make_distant(&pair);
    let [own, peer] = [LEFT, RIGHT].map(|host| pair.testbed.v4(0, host).to_string());
    pair.edit(LEFT, |text| {
        let text = text.replace(&format!("endpoint = \"{peer}\""), &format!("endpoint = \"{own}\""));
        text.replace(&format!("\"{}\"", pair.testbed.v4(1, RIGHT)), &format!("\"{DISTANT}\""))
    });
    let (code, text) = check(&pair, LEFT);
    assert_eq!(code, Some(4), "{text}");
    let p0 = format!("problem: path p0: `endpoint` is an address of this host itself: {own}\n  remedy: ");
    let p1 = format!("problem: path p1: no route to {DISTANT} from {} by p1\n", pair.testbed.v4(1, LEFT));
    assert!(text.contains(&p0) && text.contains(&p1), "{text}");
    // The right host waits for its peer, behind a firewall.
    run(&pair, RIGHT, "nft add table inet t");
    run(&pair, RIGHT, "nft add chain inet t c { type filter hook input priority 0 ; }");
    assert_eq!(check(&pair, RIGHT).0, Some(0));
    run(&pair, RIGHT, "nft add rule inet t c udp dport 4754 drop");
    let (code, text) = check(&pair, RIGHT);
    assert_eq!(code, Some(4), "{text}");
    assert!(text.contains("problem: the firewall lets no UDP 4754 in: `udp dport 4754 drop`"), "{text}");
    run(&pair, RIGHT, "nft delete table inet t");
    // Nothing listens at the peer, whose host says so.
    pair.edit(LEFT, |text| text.replace(&format!("\"{DISTANT}\""), &format!("\"{}\"", pair.testbed.v4(1, RIGHT))));
    let (_, text) = check(&pair, LEFT);
    assert!(text.contains("problem: path p1: ") && text.contains("(ICMP port unreachable)"), "{text}");
    // Then something does.
    pair.start(RIGHT);
    pair.wait_until_started(RIGHT);
    assert!(check(&pair, LEFT).1.contains("path p1: a datagram leaves, and nothing refuses it\n"));
}

#[test]
fn of_a_tunnel_that_is_up_it_tells_what_the_daemon_knows() {
    let Some(mut pair) = TunnelPair::up(IPV4, &LINKS[..1]) else { return };
    let (code, text) = check(&pair, LEFT);
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("path p0: up, RTT ") && text.ends_with("no problem found\n"), "{text}");
    pair.stop(RIGHT);
    assert!(eventually(|| check(&pair, LEFT).0 == Some(4)), "{:?}", check(&pair, LEFT));
}
