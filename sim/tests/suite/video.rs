//! Video: startup, stalls, late frames and adaptation against closed forms.

use crate::common::{
    OVERHEAD, add_striping_tunnel, application, bulk, column, host, one_link, pipe, run, set_subflows, set_up,
};
use scenario::model::{Application, Experiment, Playback, Route, Video};
use units::{Instant, Rate, Span};

const MSS: u64 = 1448;
/// IP, TCP and its timestamps, Ethernet.
const HEADERS: u64 = 52 + OVERHEAD as u64;

fn ms(ms: u64) -> Span {
    Span::from_millis(ms)
}

fn stored(startup: Span) -> Playback {
    Playback::Stored { startup, resume: startup, ahead: Span::from_secs(30) }
}

/// Frames all alike, 25 a second.
fn video(mbit: &[f64], playback: Playback) -> Video {
    let ladder = mbit.iter().map(|mbit| Rate::from_bits((mbit * 1e6) as u64)).collect();
    Video { ladder, fps: 25, gop: 50, intra: 1.0, variation: 0.0, group_variation: 0.0, playback }
}

/// A video over one link with this rate and one-way delay.
fn video_over_link(video: Video, rate: Rate, delay: Span, seconds: u64) -> Experiment {
    let mut experiment = one_link("", pipe(rate, delay, 100), seconds);
    experiment.flows = vec![bulk("video", "reno")];
    *application(&mut experiment.flows[0]) = Application::Video(Box::new(video));
    experiment
}

fn flow(experiment: &Experiment) -> record::Flow {
    run(experiment).flows.remove(0)
}

fn shown(flow: &record::Flow) -> record::Video {
    flow.video.expect("it carries video")
}

/// The rate of a link that carries just so much video of 25 frames of `bytes` a second.
fn link_for(bytes: u64) -> Rate {
    Rate::from_bits((bytes + bytes.div_ceil(MSS) * HEADERS) * 8 * 25)
}

/// A second of 1 Mbit/s is 25 frames of 5000 bytes, four segments each: windows of 10, 20, 40 and a part of one of 80.
/// The handshake takes a round trip, the first three windows one each, the last one half of one; 100 packets at 1
/// Gbit/s take 1.2 ms.
#[test]
fn the_startup_delay_is_the_handshake_and_the_rounds_of_slow_start() {
    let flow = flow(&video_over_link(video(&[1.0], stored(ms(1000))), Rate::from_mbit(1000), ms(50), 60));
    let startup = shown(&flow).startup_s.expect("it was played");
    assert!((0.450..0.453).contains(&startup), "{startup} s");
    assert_eq!(
        (shown(&flow).stalls, shown(&flow).stall_s, shown(&flow).late_frames, shown(&flow).rate_switches),
        (0, 0.0, 0, 0)
    );
    // From the start on 25 frames a second, and 30 s of media beyond.
    let played = ((60.0 - startup) * 25.0).ceil() as u64;
    assert_eq!(shown(&flow).frames, played);
    // A frame is written when another is played; the last one, 30 ms before the end, is on its way.
    assert_eq!(flow.delivered_bytes, (played + 749) * 5000);
    assert_eq!(shown(&flow).video_mbps, 1.0);
}

/// With half of the rate that it needs the buffer fills at half speed while the player waits, and runs dry at half
/// speed while it plays: two seconds of media take four to arrive, and last for four, less the fractions of frames that
/// have not arrived when the buffer's 50 frames, then 25, 12, 6 and 3 are played.
#[test]
fn a_link_of_half_the_rate_stalls_the_player_half_of_the_time() {
    let flow = flow(&video_over_link(video(&[2.0], stored(ms(2000))), Rate(link_for(10_000).0 / 2), ms(10), 600));
    let played_s = 600.0 - shown(&flow).startup_s.expect("it was played");
    // To a cycle of eight seconds.
    assert!((shown(&flow).stall_s - played_s / 2.0).abs() < 4.0, "{} s of {played_s}", shown(&flow).stall_s);
    let stalls = played_s / 8.0 - 1.0..played_s / (8.0 - 3.0 / 25.0) + 1.0;
    assert!(stalls.contains(&(shown(&flow).stalls as f64)), "{} stalls", shown(&flow).stalls);
    assert_eq!(shown(&flow).frames as f64, ((played_s - shown(&flow).stall_s) * 25.0).ceil(), "every frame is played");
}

/// Frames of a constant bit rate are exact, and all that are captured before the end arrive.
#[test]
fn the_bytes_of_a_constant_bit_rate_are_exact() {
    let playback = Playback::Live { latency: ms(500) };
    let groups = Video { intra: 4.0, ..video(&[5.0], playback) };
    let mut experiment = video_over_link(groups, Rate::from_mbit(1000), ms(10), 12);
    experiment.flows[0].stop = Some(Instant::ZERO + Span::from_secs(10));
    let flow = flow(&experiment);
    assert_eq!(flow.delivered_bytes, 5 * 250_000 * 5, "250 frames of 25 000 bytes on average");
    assert_eq!((shown(&flow).late_frames, shown(&flow).startup_s), (0, Some(0.5)));
    // A frame is captured every 40 ms; those up to half a second before the end have had their turn.
    assert_eq!(shown(&flow).frames, 238);
    // 18 packets and the headers of the last one.
    let transmission = 18.0 * 1538.0 * 8.0 / 1e9 * 1e3;
    assert!(
        (10.0..10.0 + transmission).contains(&shown(&flow).frame_delay_ms.p50),
        "{:?}",
        shown(&flow).frame_delay_ms
    );
}

/// The link is down for two seconds. Frames captured from then on are late unless their turn comes after data flow
/// again; that moment is in the series, and no later than twice the outage and a timeout. What is behind then (4 Mbit/s
/// over 3.2 s: 1100 packets) leaves in five rounds of slow start, to the threshold of about 18 packets, and in 32 of a packet
/// more each: 37 rounds of 2 ms are less than two frames. One more is for where the outage begins between two frames.
#[test]
fn the_late_frames_of_an_outage_are_those_whose_turn_comes_in_it() {
    let latency = 0.3;
    let playback = Playback::Live { latency: Span::from_secs_f64(latency) };
    let mut experiment = video_over_link(video(&[4.0], playback), Rate::from_mbit(1000), ms(1), 30);
    experiment.sample = Some(ms(2));
    host(&mut experiment.flows[0]).quick_ack = true; // or the first retransmission waits for its acknowledgement
    experiment.events = vec![set_up(0, 10_010, false), set_up(0, 12_010, true)];
    let run = run(&experiment);
    let goodput = column(&run, "flow video", "goodput_mbps");
    let resumed_s =
        (12_010 / 2..goodput.len()).find(|sample| goodput[*sample] > 0.0).expect("it recovers") as f64 * 0.002;
    assert!((12.0..14.5).contains(&resumed_s), "{resumed_s} s");
    let expected = (resumed_s - latency - 10.010) * 25.0;
    let late = shown(&run.flows[0]).late_frames as f64;
    println!("{resumed_s} s: {late} late frames, {expected} turns");
    assert!((-1.0..=3.0).contains(&(late - expected)), "{late} late frames, {expected} turns");
    assert_eq!(shown(&run.flows[0]).frames, ((30.0 - latency) * 25.0).ceil() as u64, "its clock goes on");
}

/// By the buffer (BBA-0): more than the highest rate is there, or a link between two rates is shared between them.
#[test]
fn stored_video_takes_what_the_link_carries_without_stalling() {
    let ladder = [1.0, 2.5, 5.0, 8.0];
    let ample = flow(&video_over_link(video(&ladder, stored(ms(2000))), Rate::from_mbit(20), ms(10), 300));
    assert_eq!((shown(&ample).stalls, shown(&ample).late_frames), (0, 0));
    assert!(shown(&ample).rate_switches <= 3, "it only goes up: {} switches", shown(&ample).rate_switches);
    assert!((7.0..8.0).contains(&shown(&ample).video_mbps), "{} Mbit/s", shown(&ample).video_mbps);
    // 6.4 Mbit/s of payload: between 5 and 8.
    let link = link_for(32_000);
    let between = flow(&video_over_link(video(&ladder, stored(ms(2000))), link, ms(10), 600));
    assert_eq!(shown(&between).stalls, 0);
    assert!((5.0..6.4).contains(&shown(&between).video_mbps), "{} Mbit/s", shown(&between).video_mbps);
    // What was delivered was played, but for the buffer and the media of its beginning; the link idles for a round trip
    // a group, 1 % of two seconds.
    assert!(between.goodput_mbps > 0.95 * 6.4, "{} Mbit/s", between.goodput_mbps);
}

/// By what is behind: it tries 8 Mbit/s ever more seldom.
#[test]
fn live_video_settles_below_what_the_link_carries() {
    let playback = Playback::Live { latency: ms(1000) };
    let flow = flow(&video_over_link(video(&[1.0, 2.5, 5.0, 8.0], playback), link_for(32_000), ms(10), 600));
    assert!((shown(&flow).video_mbps / 5.0 - 1.0).abs() < 0.05, "{} Mbit/s", shown(&flow).video_mbps);
    assert!(
        shown(&flow).late_frames * 100 < shown(&flow).frames,
        "{} of {} late",
        shown(&flow).late_frames,
        shown(&flow).frames
    );
}

/// Two paths of 4 Mbit/s, one with 10 ms more, under a tunnel that puts packets in order or with a subflow on each:
/// together they carry what neither can carry alone.
#[test]
fn two_paths_carry_what_one_cannot() {
    let playback = stored(ms(2000));
    let mut experiment = video_over_link(video(&[5.0], playback), Rate::from_mbit(4), ms(10), 120);
    let alone = flow(&experiment);
    assert!(shown(&alone).stalls > 0 && alone.goodput_mbps < 4.0, "{alone:?}");
    add_striping_tunnel(&mut experiment, pipe(Rate::from_mbit(4), ms(20), 100), 1600, ms(300));
    experiment.tunnel.as_mut().expect("it was just added").overhead = 36;
    for way in [Route::Tunnel, Route::Subflows] {
        experiment.flows[0].route = way;
        if way == Route::Subflows {
            set_subflows(&mut experiment.flows[0], &[0, 1]);
        }
        for playback in [playback, Playback::Live { latency: ms(500) }] {
            *application(&mut experiment.flows[0]) = Application::Video(Box::new(video(&[5.0], playback)));
            let together = flow(&experiment);
            assert_eq!((shown(&together).stalls, shown(&together).late_frames), (0, 0), "{together:?}");
            assert_eq!(shown(&together).video_mbps, 5.0);
        }
    }
}

/// Adding a video does not change another component's random draws, and a seed gives its frames again.
#[test]
fn a_seed_gives_its_frames_again() {
    let playback = Playback::Live { latency: ms(500) };
    let varied = Video { intra: 3.0, variation: 0.4, group_variation: 0.3, ..video(&[5.0], playback) };
    let experiment = video_over_link(varied, Rate::from_mbit(20), ms(10), 20);
    let bytes = |seed| ropewalk_sim::run(&experiment, seed).expect("registered").flows[0].delivered_bytes;
    assert_eq!(bytes(1), bytes(1));
    assert_ne!(bytes(1), bytes(2));
}
