//! The dashboard's page in a browser, in the situations in which it is looked at: one peer and two hundred, clocks that
//! differ, a daemon that ends, many tabs, links of other sites, a proxy, long names, a phone. The page and the server are
//! the real ones, the statuses are made.

mod browser;
mod server;

use super::recorder::{Recorder, unix_seconds};
use super::sample::{Sample, State};
use crate::event::{Cause, CauseKind};
use crate::status::{Condition, PathState, PeerCondition, PeerStatus, TunnelStatus};
use browser::{Browser, Page};
use serde_json::{Value, json};
use server::{Daemon, proxy, site};
use std::path::PathBuf;
use std::sync::Once;
use testing::{Reason, eventually, skip};

/// Tells once that the rules of accessibility are missing.
static SKIP: Once = Once::new();
const TOKEN: &str = "b64+of/128-bits-at-least==";

/// A tunnel with so many peers of two paths. All work.
fn tunnel(peers: usize) -> TunnelStatus {
    let mut status = TunnelStatus::example();
    let since_ms = unix_seconds() * 1000 - 3_600_000;
    let peer = |number: usize| {
        let mut peer = status.peers[0].clone();
        peer.public_key = Some(format!("{number:0>43}="));
        peer.name = Some(if peers == 1 { "office".into() } else { format!("site-{number:03}") });
        peer.since_unix_ms = Some(since_ms);
        for path in &mut peer.paths {
            (path.since_unix_ms, path.opened_by_peer) = (Some(since_ms), peers > 1);
        }
        peer
    };
    status.peers = (0..peers).map(peer).collect();
    status.notices.clear();
    status.events.iter_mut().for_each(|event| event.unix_ms = since_ms);
    status
}

/// Lets a path fail, or all of a peer's.
fn fail(peer: &mut PeerStatus, paths: &[usize]) {
    let now_ms = unix_seconds() * 1000;
    for index in paths {
        let path = &mut peer.paths[*index];
        path.forget_measurements();
        (path.state, path.condition, path.since_unix_ms) = (PathState::Down, Condition::Down, Some(now_ms));
        (path.send_rate_bps, path.receive_rate_bps) = (0, 0);
        let text = "the peer does not answer on this path".to_owned();
        path.cause = Some(Cause { kind: CauseKind::SilentPath, text, remedy: "look at the modem".into() });
    }
    peer.judge();
    peer.since_unix_ms = Some(now_ms);
}

const LIVE: &str = "document.querySelector('#connection').className === 'live' && document.querySelector('svg')";

fn open<'a>(browser: &'a Browser, address: &str) -> Page<'a> {
    let page = browser.page();
    page.show(1280, &[]);
    page.open(address);
    page.wait(LIVE);
    page
}

/// The totals by their names.
fn total(page: &Page<'_>, name: &str) -> String {
    let find = format!(
        "[...document.querySelectorAll('#totals div')].find((it) => it.querySelector('dt').innerText === {name:?})"
    );
    page.value(&format!("{find}?.querySelector('dd').innerText ?? ''")).as_str().unwrap().to_owned()
}

/// No violation of the rules of axe-core, which `cargo xtask setup` fetches.
fn check_access(page: &Page<'_>, what: &str) {
    let file = std::env::var_os("ROPEWALK_AXE").map(PathBuf::from);
    let file =
        file.unwrap_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../target/axe/package/axe.min.js"));
    let Ok(script) = std::fs::read_to_string(&file) else {
        return SKIP.call_once(|| skip(Reason::Missing, "axe-core"));
    };
    page.value(&format!("{script}; true"));
    let found = "axe.run().then(({ violations }) => violations.map((it) => `${it.id}: ${it.nodes.map((node) => node.html.slice(0, 90))}`))";
    assert_eq!(page.value(found), json!([]), "{what}");
}

/// Nothing is wider than the window.
fn check_width(page: &Page<'_>, what: &str) {
    assert_eq!(page.value("document.documentElement.scrollWidth <= innerWidth"), true, "{what}");
    let outside = "[...document.querySelectorAll('svg text')].filter((it) => it.getBoundingClientRect().right > innerWidth + 1).map((it) => it.textContent)";
    assert_eq!(page.value(outside), json!([]), "{what}");
}

/// The page in all the ways in which it is looked at.
fn check_looks(page: &Page<'_>, name: &str) {
    let dark = ("prefers-color-scheme", "dark");
    for (kind, width, features) in [
        ("light", 1280, &[][..]),
        ("dark", 1280, &[dark][..]),
        ("phone", 400, &[]),
        ("forced", 1280, &[("forced-colors", "active")]),
    ] {
        page.show(width, features);
        page.wait(&format!("document.querySelector('svg').getBoundingClientRect().width <= {width}"));
        check_width(page, &format!("{name}, {kind}"));
        check_access(page, &format!("{name}, {kind}"));
        page.picture(&format!("{name}-{kind}"));
    }
    page.show(1280, &[]);
}

#[test]
fn one_peer_has_its_paths_on_the_first_page_and_what_is_wrong_is_said_and_in_the_title() {
    let Some(browser) = Browser::start() else { return };
    let daemon = Daemon::start(tunnel(1));
    let page = open(&browser, &daemon.url(""));
    page.wait("document.querySelector('#totals dd').innerText === '10 Mbit/s'");
    assert_eq!((total(&page, "Paths up"), page.text("#alerts")), ("2 of 2".into(), String::new()));
    assert_eq!(page.value("document.querySelector('#overview').hidden"), true);
    assert!(page.text("#paths").contains("80 Mbit/s"), "what the path can carry: {}", page.text("#paths"));
    assert_eq!(page.value("document.title"), "rw0 – Ropewalk");
    check_looks(&page, "one");
    daemon.change(|status| fail(&mut status.peers[0], &[0]));
    page.wait("document.querySelector('#alerts').innerText.startsWith('fibre is down')");
    let said = page.value("document.querySelector('#announcement[aria-live=polite]').textContent");
    assert_eq!(said, "1 alert: fibre is down");
    assert_eq!(page.value("document.title"), "(1) rw0 – Ropewalk");
    // Nothing is known of a path that does not answer.
    page.wait("[...document.querySelectorAll('#paths tbody tr:first-child td')].map((it) => it.innerText).slice(3, 7).join() === '–,–,–,–'");
    daemon.change(|status| {
        let path = &mut status.peers[0].paths[1];
        let text = "carries 2.0 Mbit/s, usually 20.0 Mbit/s".into();
        path.cause = Some(Cause { kind: CauseKind::Slow, text, remedy: "`ropewalk test`".into() });
        path.condition = Condition::Degraded;
    });
    page.wait("document.querySelectorAll('#alerts li').length === 2");
    assert!(page.text("#alerts").contains("lte is degraded: carries 2.0 Mbit/s"), "{}", page.text("#alerts"));
    check_looks(&page, "one-ailing");
    assert_eq!(browser.exceptions(), Vec::<String>::new());
}

#[test]
fn of_two_hundred_peers_the_worst_come_first_one_row_each_and_a_search_and_a_page_find_each() {
    let Some(browser) = Browser::start() else { return };
    for peers in [20, 200] {
        let mut status = tunnel(peers);
        fail(&mut status.peers[3], &[0, 1]);
        (peers - 12..peers).for_each(|number| fail(&mut status.peers[number], &[1]));
        let daemon = Daemon::start(status);
        let page = open(&browser, &daemon.url(""));
        let rows = "[...document.querySelectorAll('#peers tbody tr')].map((it) => it.innerText.replaceAll('\\t', ' '))";
        page.wait(&format!("{rows}.length === {peers}"));
        let rows: Vec<String> = serde_json::from_value(page.value(rows)).unwrap();
        assert!(rows[0].starts_with(&format!("site-{:03}", 3)) && rows[0].contains("lost 0 of 2 – –"), "{}", rows[0]);
        assert!(rows[1..13].iter().all(|row| row.contains("degraded 1 of 2")), "{rows:#?}");
        assert!(rows[13..].iter().all(|row| row.contains("up 2 of 2")), "{rows:#?}");
        let alerts = page.text("#alerts");
        assert!(alerts.contains(&format!("site-{:03} is lost since", 3)), "{alerts}");
        let names = format!(
            "lte is down at 12 peers: site-{:03}, site-{:03}, site-{:03} and 9 more",
            peers - 12,
            peers - 11,
            peers - 10
        );
        assert!(alerts.contains(&names) && alerts.contains("look at the modem"), "{alerts}");
        assert_eq!(total(&page, "Paths up"), format!("{} of {}", 2 * peers - 14, 2 * peers));
        assert_eq!(page.value("document.title"), "(2) rw0 – Ropewalk");
        check_looks(&page, &format!("peers-{peers}"));
        // Those of which each fails for another reason are cut with their number.
        daemon.change(|status| {
            for number in 0..12 {
                let peer = &mut status.peers[number];
                fail(peer, &[0]);
                let since = 1_000_000 + 60_000 * number as u64;
                peer.paths[0].since_unix_ms = Some(since);
            }
        });
        page.wait("document.querySelector('#alerts summary')?.innerText.startsWith('and ')");
        let count: usize = page.text("#announcement").split(' ').next().unwrap().parse().unwrap();
        assert!(
            count >= 9 && page.text("#alerts summary") == format!("and {} more", count - 8),
            "{}",
            page.text("#alerts")
        );
        page.value("document.querySelector('#search').value = 'site-007'; document.querySelector('#search').dispatchEvent(new Event('input'))");
        assert_eq!(page.text("#found"), format!("1 of {peers} peers"));
        page.value("document.querySelector('#peers a').click()");
        page.wait("document.querySelector('#name').innerText.startsWith('site-007')");
        page.wait("document.querySelectorAll('#paths tbody tr').length === 2");
        assert_eq!(page.value("document.querySelector('#overview').hidden"), true);
        let left_out = page.text("#unrecorded");
        assert!(
            left_out.starts_with("The history keeps 32 series, and 2 of these paths are not among them"),
            "{left_out}"
        );
        check_looks(&page, &format!("peer-of-{peers}"));
        page.value("document.querySelector('#back a').click()");
        page.wait("!document.querySelector('#overview').hidden");
    }
    assert_eq!(browser.exceptions(), Vec::<String>::new());
}

#[test]
fn the_clock_of_the_browser_does_not_matter() {
    let Some(browser) = Browser::start() else { return };
    let daemon = Daemon::start(tunnel(1));
    for (minutes, words) in [(10, "10 min ahead"), (-10, "10 min behind")] {
        let page = browser.page();
        page.show(1280, &[]);
        page.before(&format!(
            "{{ const Clock = Date; const now = () => Clock.now() + {minutes} * 60000; \
             globalThis.Date = class extends Clock {{ \
                 constructor(...parts) {{ parts.length ? super(...parts) : super(now()); }} \
                 static now() {{ return now(); }} }} }}"
        ));
        page.open(&daemon.url(""));
        page.wait(LIVE);
        page.wait("document.querySelector('#totals dd').innerText === '10 Mbit/s'");
        page.wait("document.querySelectorAll('svg .ribbon.up').length >= 2");
        let states = page.value("[...document.querySelectorAll('#paths .state')].map((it) => it.innerText)");
        assert_eq!(states, json!(["up", "up"]), "{minutes}");
        let zone = page.text("#zone");
        assert!(zone.contains(words) && zone.matches("zone of this browser").count() == 1, "{zone}");
    }
    assert_eq!(browser.exceptions(), Vec::<String>::new());
}

#[test]
fn a_daemon_that_ends_leaves_no_numbers_and_its_successor_is_followed() {
    let Some(browser) = Browser::start() else { return };
    let daemon = Daemon::start(tunnel(1));
    let address = daemon.address.to_string();
    let page = open(&browser, &daemon.url(""));
    page.wait("document.querySelector('#totals dd').innerText === '10 Mbit/s'");
    drop(daemon);
    page.wait("document.querySelector('#alerts').innerText.startsWith('No data since')");
    for name in ["Sent", "Received", "Round trip of the fastest path", "Paths up"] {
        assert_eq!(total(&page, name), "–", "{name}");
    }
    assert_eq!(page.text("#paths .state"), "no data");
    assert_eq!(page.value("document.title"), "(no data) rw0 – Ropewalk");
    assert!(page.text("#announcement").contains("No data since") && page.text("#connection").len() <= 120);
    page.picture("daemon-gone");
    check_access(&page, "no data");
    // The same version, and a later one whose status has more, and whose events begin again.
    for more in [Value::Null, json!({"version": 9, "weather": {"degrees_c": 21}, "events": []})] {
        let daemon = Daemon::start_with(tunnel(1), Recorder::default(), None, &address, more);
        page.wait(LIVE);
        page.wait("document.querySelector('#totals dd').innerText === '10 Mbit/s'");
        assert_eq!((total(&page, "Paths up"), page.text("#alerts")), ("2 of 2".into(), String::new()));
        drop(daemon);
        page.wait("document.querySelector('#alerts').innerText.startsWith('No data since')");
    }
    assert_eq!(browser.exceptions(), Vec::<String>::new());
}

#[test]
fn eight_tabs_are_all_live_when_they_are_looked_at() {
    let Some(browser) = Browser::start() else { return };
    let daemon = Daemon::start(tunnel(1));
    let pages: Vec<_> = (0..8)
        .map(|_| {
            let page = browser.page();
            page.open(&daemon.url(""));
            page
        })
        .collect();
    for page in pages.iter().chain(pages.iter().rev()) {
        page.bring_to_front();
        page.wait("document.visibilityState === 'visible'");
        page.wait(LIVE);
        page.wait("document.querySelector('#totals dd').innerText === '10 Mbit/s'");
    }
    assert_eq!(browser.exceptions(), Vec::<String>::new());
}

#[test]
fn a_link_of_another_site_with_the_token_opens_the_page_and_reloads() {
    let Some(browser) = Browser::start() else { return };
    let daemon = Daemon::start_with(tunnel(1), Recorder::default(), Some(TOKEN), "127.0.0.1:0", Value::Null);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let wiki = site(&runtime, &daemon.url(&format!("?token={TOKEN}")));
    let page = browser.page();
    // A name of its own makes it another site.
    page.open(&format!("http://localhost:{}/", wiki.port()));
    page.wait("document.querySelector('a')");
    page.value("document.querySelector('a').click()");
    page.wait(LIVE);
    assert_eq!(page.value("location.search"), "", "the token is not in the address");
    page.call("Page.reload", &json!({}));
    page.wait(LIVE);
    // Without the token the answer says what to do, and a wrong token that it is wrong.
    let refused = |rest: &str| {
        let page = browser.page();
        page.call("Network.enable", &json!({}));
        page.call("Network.clearBrowserCookies", &json!({}));
        page.open(&daemon.url(rest));
        page.wait("document.body?.innerText.length > 9");
        page.text("body")
    };
    assert!(refused("").starts_with("open /?token=TOKEN once"));
    assert!(refused("?token=wrong").starts_with("the token is not that of dashboard-token-file"));
}

#[test]
fn behind_a_proxy_the_page_works_below_a_path_and_errors_of_the_proxy_are_short() {
    let Some(browser) = Browser::start() else { return };
    for token in [None, Some(TOKEN)] {
        let daemon = Daemon::start_with(tunnel(1), Recorder::default(), token, "127.0.0.1:0", Value::Null);
        let proxy = proxy(daemon.address);
        let rest = token.map_or_else(String::new, |token| format!("?token={token}"));
        let page = open(&browser, &format!("http://{proxy}/site7/{rest}"));
        page.wait("document.querySelector('#totals dd').innerText === '10 Mbit/s'");
        assert_eq!(page.value("location.pathname"), "/site7/");
        let error = page.value("get('../nowhere').catch((error) => error.message)");
        assert_eq!(error, "HTTP 404 Not Found");
        drop(daemon);
        page.wait("document.querySelector('#alerts').innerText.startsWith('No data since')");
    }
    assert_eq!(browser.exceptions(), Vec::<String>::new());
}

#[test]
fn long_names_fit_and_markup_in_them_is_text() {
    let Some(browser) = Browser::start() else { return };
    let mut status = tunnel(3);
    for (peer, name) in
        status.peers.iter_mut().zip(["w".repeat(64), "<img src=x onerror=alert(1)>".into(), "短い名前".into()])
    {
        peer.name = Some(name);
        peer.paths[0].name = "x".repeat(64);
        peer.paths[1].name = "<b>bold</b>".into();
        fail(peer, &[0]);
    }
    let daemon = Daemon::start(status);
    let page = open(&browser, &daemon.url(""));
    page.wait("document.querySelectorAll('#peers tbody tr').length === 3");
    assert_eq!(page.value("document.querySelectorAll('main img, main td b').length"), 0);
    check_looks(&page, "long-names");
    page.value("document.querySelector('#peers a').click()");
    page.wait("document.querySelectorAll('#paths tbody tr').length === 2 && document.querySelectorAll('svg .name').length >= 2");
    check_looks(&page, "long-names-of-one");
    assert_eq!(browser.exceptions(), Vec::<String>::new());
}

/// A week of minutes. The second path is down for five seconds in every fifteenth.
fn week(status: &TunnelStatus) -> Recorder {
    let mut recorder = Recorder::default();
    let now_s = unix_seconds() / 60 * 60;
    recorder.record(now_s, status).1.unwrap();
    let second = |state| Sample::new(state, [5e6, 1e6], Some(20.0), Some(1.0), Some(0.001));
    let minute = |down: usize| {
        Sample::merge((0..60).map(|second_of| second(if second_of < down { State::Down } else { State::Up })))
    };
    let [whole, broken] = [0, 5].map(minute);
    let name = &status.peers[0].paths[1].name;
    for series in &mut recorder.series {
        let flaps = series.key.path.as_ref() == Some(name);
        for number in 1..7 * 24 * 60 {
            let sample = if flaps && number % 15 == 0 { broken } else { whole };
            series.minutes.insert(now_s - (7 * 24 * 60 - number) * 60, sample);
        }
    }
    recorder
}

#[test]
fn a_week_in_which_a_path_was_up_for_all_but_half_a_percent_looks_so() {
    let Some(browser) = Browser::start() else { return };
    let status = tunnel(1);
    let daemon = Daemon::start_with(status.clone(), week(&status), None, "127.0.0.1:0", Value::Null);
    let page = open(&browser, &daemon.url("#604800"));
    page.wait("document.querySelector('svg').textContent.includes('worked 99.')");
    let shown = page.value("document.querySelector('svg').textContent").to_string();
    assert!(shown.contains("worked 99.4 % (interrupted in") && shown.contains("worked 100 %"), "{shown}");
    // The hatch is as high as the share of time, at least a mark; the ribbon and the lines are not cut.
    let heights = "[...document.querySelectorAll('svg .broken.down')].map((it) => Number(it.getAttribute('height')))";
    let heights: Vec<f64> = serde_json::from_value(page.value(heights)).unwrap();
    assert!(!heights.is_empty() && heights.iter().all(|height| *height <= 3.0), "{heights:?}");
    assert_eq!(page.value("document.querySelectorAll('svg .ribbon.down').length"), 0);
    assert_eq!(page.value("[...document.querySelectorAll('svg path[fill=none][stroke-linejoin]')].every((it) => it.getAttribute('d').split('M').length <= 3)"), true);
    check_looks(&page, "week");
    assert_eq!(browser.exceptions(), Vec::<String>::new());
}

#[test]
fn without_a_history_the_chart_says_so_and_has_no_axis() {
    let Some(browser) = Browser::start() else { return };
    let daemon = Daemon::start(tunnel(1));
    let page = browser.page();
    // The history never comes.
    page.before("const real = fetch; globalThis.fetch = (url, ...rest) => String(url).includes('history') ? new Promise(() => {}) : real(url, ...rest)");
    page.open(&daemon.url(""));
    page.wait("document.querySelector('#figure')?.innerText.includes('Loading the history')");
    assert_eq!(page.value("document.querySelectorAll('svg').length"), 0);
    assert!(eventually(|| total(&page, "Paths up") == "2 of 2"));
    assert_eq!(page.value("document.querySelector('noscript') !== null && document.querySelector('link[rel=icon]').href.startsWith('data:')"), true);
}

#[test]
fn the_condition_of_a_peer_follows_from_its_paths() {
    let mut status = tunnel(1);
    let peer = &mut status.peers[0];
    fail(peer, &[1]);
    assert_eq!(peer.condition, PeerCondition::Degraded);
    fail(peer, &[0]);
    assert_eq!(peer.condition, PeerCondition::Lost);
    peer.paths.iter_mut().for_each(|path| path.condition = Condition::Standby);
    peer.judge();
    assert_eq!(peer.condition, PeerCondition::Up);
}

/// The contrast of two colours such as `#1b1e24` (WCAG 2.2, "contrast ratio").
fn contrast(colours: [&str; 2]) -> f64 {
    let channel = |digits: &str| {
        let value = f64::from(u8::from_str_radix(digits, 16).unwrap()) / 255.0;
        if value <= 0.040_45 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
    };
    let luminance = |colour: &str| {
        let colour =
            if colour.len() == 4 { colour[1..].chars().flat_map(|c| [c, c]).collect() } else { colour[1..].to_owned() };
        0.2126 * channel(&colour[..2]) + 0.7152 * channel(&colour[2..4]) + 0.0722 * channel(&colour[4..])
    };
    let [a, b] = colours.map(luminance);
    (a.max(b) + 0.05) / (a.min(b) + 0.05)
}

#[test]
fn every_state_and_line_stands_out_from_the_page_three_to_one_and_text_more() {
    assert!((contrast(["#fff", "#000000"]) - 21.0).abs() < 1e-9);
    let themes = include_str!("../page/style.css").split(":root {").skip(1).map(|rest| rest.split('}').next().unwrap());
    for theme in themes {
        let colours: Vec<(&str, &str)> =
            theme.split(';').filter_map(|part| part.trim().strip_prefix("--")?.split_once(": ")).collect();
        let page = colours.iter().find(|(name, _)| *name == "page").unwrap().1;
        for (name, colour) in &colours {
            let least = match *name {
                "page" | "panel" | "line" => continue,
                "ink" | "faint" => 4.5,
                _ => 3.0,
            };
            assert!(contrast([colour, page]) >= least, "{name}: {}", contrast([colour, page]));
        }
        assert!(colours.len() > 18, "{colours:?}");
    }
}
