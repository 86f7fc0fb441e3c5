//! Formats of traces, and what is refused.

use super::{date, parse};

/// The opportunities and the period of a trace.
fn read(text: &str) -> (Vec<u64>, u64) {
    let trace = parse(text, None).expect("a good trace");
    (trace.opportunities.to_vec(), trace.period_ms)
}

/// Line and message of the error of a trace.
fn error(text: &str) -> (usize, String) {
    let error = parse(text, None).expect_err("a bad trace");
    (error.line, error.message)
}

#[test]
fn a_rate_holds_from_the_row_before_until_its_own_time() {
    // 12 kbit per packet: 1.2 Mbit/s is one in 10 ms, 2.4 Mbit/s one in 5 ms. The first row's rate is not used.
    assert_eq!(read("0 99\n0.02 1.2\n0.03 0\n0.04 2.4\n"), (vec![10, 20, 35, 40], 40));
    // A trace may begin at any time.
    assert_eq!(read("5.5\t99\r\n5.52\t1.2\r\n5.53\t0\r\n5.54\t2.4\r\n"), (vec![10, 20, 35, 40], 40));
}

#[test]
fn what_is_left_of_a_packet_goes_on_with_the_next_rate() {
    // 6 kbit by 10 ms, the other 6 of the packet by 12.5 ms; then 12 kbit by 17.5 ms.
    assert_eq!(read("0 0\n0.01 0.6\n0.02 2.4"), (vec![13, 18], 20));
}

#[test]
fn a_constant_rate_is_carried_to_the_last_packet() {
    let rows: String = (0..=60).map(|second| format!("{second} 37.5\n")).collect();
    let trace = parse(&rows, None).unwrap();
    assert_eq!((trace.opportunities.len(), trace.period_ms), (37_500_000 * 60 / 12_000, 60_000));
    assert_eq!(trace.mean_rate(), units::Rate::from_bits(37_500_000));
}

#[test]
fn csv_in_many_spellings_is_the_same_trace() {
    for text in [
        "time_s,throughput_mbps\n0,9\n0.02,1.2\n0.03,0\n0.04,2.4\n",
        "Time (ms);Bandwidth [kbit/s]\n7;9\n27;1200\n37;0\n47;2400\n",
        "rate_bps\ttime\n9\t0\n1200000\t.02\n0\t0.03\n2.4e6\t0.04",
        "time Mbps\n0 9\n0.02 1.2\n0.03 0\n0.04 2.4\n",
        "\u{feff}\"timestamp\",\"note, with comma\",\"goodput MB/s\"\n1,\"a, b\",0\n1.02,,0.15\n1.03,,0\n1.04,,0.3\n",
        "# measured\ntimestamp,bits_per_second\n1607590000000,0\n1607590000020,1200000\n1607590000030,0\n\
         1607590000040,2400000\n",
        "date,speed kbps\n2020-02-29T23:59:59.98Z,0\n2020-03-01 00:00:00,1200\n2020-03-01T00:00:00.01+01:00,0\n\
         2020-03-01 00:00:00.020,2400\n",
        // A row without a measurement is as if it were not there.
        "time_s,throughput_mbps\n0,9\n0.01,-\n0.02,1.2\n0.03,0\n0.035,NaN\n0.04,2.4\n",
    ] {
        assert_eq!(read(text), (vec![10, 20, 35, 40], 40), "{text}");
    }
}

#[test]
fn g_net_tracks_columns_are_in_kbit_and_the_download_is_the_default() {
    let text = "Timestamp,CellID,State,DL_bitrate,UL_bitrate\n2020.02.13_13.03.24,1,D,5,5\n\
                2020.02.13_13.03.24,1,D,7,7\n2020.02.13_13.03.25,1,D,1200,12\n2020.02.13_13.03.27,1,I,0,24\n";
    let download = parse(text, None).unwrap();
    assert_eq!((download.opportunities.len(), download.period_ms), (100, 3000));
    let upload = parse(text, Some("UL_bitrate")).unwrap();
    assert_eq!(upload.opportunities[..], [1000, 1500, 2000, 2500, 3000]);
}

#[test]
fn the_intervals_of_iperf3_are_a_trace() {
    let interval = |start: f64, end: f64, rate: f64| {
        format!(
            r#"{{"streams": [], "sum": {{"start": {start}, "end": {end}, "bytes": 1, "bits_per_second": {rate}}}}}"#
        )
    };
    let intervals = [interval(1.0, 1.02, 1.2e6), interval(1.02, 1.03, 0.0), interval(1.03, 1.04, 2.4e6)];
    assert_eq!(
        read(&format!(r#"{{"start": {{}}, "intervals": [{}]}}"#, intervals.join(","))),
        (vec![10, 20, 35, 40], 40)
    );
    for (text, message) in [
        ("{\n\"intervals\": 3}", "this is not the JSON of iperf3"),
        ("{\"intervals\": []}", "less than a packet"),
        (&format!("{{\"intervals\": [{}]}}", interval(0.0, 1.0, -1.0)), "a rate is negative"),
        (&format!("{{\"intervals\": [{0}, {0}]}}", interval(0.0, 1.0, 1.0)), "do not follow each other"),
    ] {
        assert!(error(text).1.contains(message), "{text}: {:?}", error(text));
    }
}

#[test]
fn dates_differ_by_their_seconds() {
    let second = |text: &str| date::nanos(text).map(|nanos| nanos / 1_000_000_000);
    assert_eq!(second("1970-01-01 00:00:00"), Some(0));
    assert_eq!(second("2000/03/01 00:00:00"), Some(951_868_800));
    assert_eq!(second("2026.11.27_20.48.02"), Some(1_795_812_482));
    for text in ["", "2020", "13:03:24", "2020-13-01 00:00:00", "2020-01-01 24:00:00", "2020-01-01 00:00:00 x 5", "a-b"]
    {
        assert_eq!(date::nanos(text), None, "{text}");
    }
}

#[test]
fn what_is_wrong_is_said_at_its_line() {
    for (text, line, message) in [
        ("0 1\n1 2\n0.5 3\n", 3, "time goes backwards"),
        ("0 1\n1 -2\n", 2, "the rate is negative"),
        ("0 1\n1 nan\n2\n", 3, "1 columns, but 2 above"),
        ("0 1\nx 2\n", 2, "this is not a time"),
        ("0 1\n1 fast\n", 2, "this is not a rate"),
        ("0 1\n1 inf\n", 2, "the rate is negative or above"),
        ("0 5\n", 1, "no two times"),
        ("0 5\n10 0\n", 1, "less than a packet"),
        ("0 0\n1000 0\n30000000 0.0000004\n", 1, "less than a packet"),
        ("5\n18446744073709551615\n", 1, "longer than a year"),
        ("31622400000\n", 1, "less than 1 bit/s"),
        ("0 0\n1000 1000000\n", 2, "too long"),
        ("0 0\n1e9 0.00001\n", 2, "too long"),
        ("1 2 3\n", 1, "a line of 3 numbers"),
        ("\n# x\n1,2,3\n", 3, "a line of 3 numbers"),
        ("a,b\n1,2\n", 1, "no column is recognised as a time"),
        ("time,b\n1,2\n", 1, "no column is recognised as a rate"),
        ("time,throughput\n1,2\n", 1, "column 2 has no unit"),
        ("time,a_mbps,b_mbps\n1,2,3\n", 1, "columns 2, 3 are all recognised as rates"),
        ("time,mbps\n0,1\n1,2,3\n", 3, "3 columns, but 2 above"),
        ("time,mbps\n", 1, "no two times"),
        ("1\n2\n3 4\n", 3, "not a time stamp in milliseconds"),
    ] {
        let (at, said) = error(text);
        assert!(at == line && said.contains(message), "{text:?}: {at}: {said}");
    }
    assert!(parse("time,a_mbps\n", Some("c")).unwrap_err().message.contains("`c`"));
}
