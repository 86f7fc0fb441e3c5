//! A hook and a web server are told that a path has gone down.

use crate::tunnel_pair::{IPV4, TunnelPair};
use lab::testbed::{LEFT, RIGHT};
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use testing::eventually;

const LINKS: [&str; 2] = ["rate=10mbit delay=5ms", "rate=10mbit delay=5ms"];

/// The event that a JSON text tells, if it is of this path.
fn event(text: &str, path: &str) -> Option<Value> {
    let notification: Value = serde_json::from_str(text).unwrap();
    assert_eq!((&notification["version"], &notification["interface"]), (&1.into(), &"rw0".into()), "{text}");
    Some(notification["event"].clone()).filter(|event| event["path"] == path)
}

#[test]
fn a_hook_without_capabilities_and_a_web_server_are_told_of_a_path_that_goes_down() {
    let Some(mut pair) = TunnelPair::configured(IPV4, &LINKS) else { return };
    let [hook, told, capabilities] = ["hook", "told", "capabilities"].map(|name| pair.folder(LEFT).join(name));
    let script = format!(
        "#!/bin/sh\ncat >> {0}\ngrep -E '^(CapPrm|CapEff|CapBnd|CapAmb|NoNewPrivs)' /proc/self/status > {1}.new\nmv {1}.new {1}\n",
        told.display(),
        capabilities.display()
    );
    fs::write(&hook, script).unwrap();
    fs::set_permissions(&hook, PermissionsExt::from_mode(0o755)).unwrap();
    let server = pair.testbed.within(LEFT, || Ok(TcpListener::bind("127.0.0.1:9999")?)).unwrap();
    pair.edit(LEFT, |text| {
        let table = format!(
            "\n[notify]\nhook = \"{}\"\nwebhook = \"http://127.0.0.1:9999/told\"\nevents = \"path-down\"\n",
            hook.display()
        );
        text + &table
    });
    [RIGHT, LEFT].into_iter().for_each(|host| pair.start(host));
    [RIGHT, LEFT].into_iter().for_each(|host| pair.wait_until_up(host));
    let name = pair.testbed.device(0);
    pair.testbed.run(LEFT, &format!("ip link set {name} down")).unwrap();
    let (mut stream, _) = server.accept().unwrap();
    let mut request = BufReader::new(stream.try_clone().unwrap());
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        request.read_line(&mut head).unwrap();
    }
    assert!(head.starts_with("POST /told HTTP/1.1\r\n"), "{head}");
    let length = head.to_lowercase().split("content-length: ").nth(1).unwrap().lines().next().unwrap().parse();
    let mut body = vec![0; length.unwrap()];
    request.read_exact(&mut body).unwrap();
    stream.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").unwrap();
    let by_post = event(&String::from_utf8(body).unwrap(), &name).expect("of the path");
    assert_eq!(by_post["kind"], "path-down");
    assert!(eventually(|| capabilities.exists()));
    let by_hook = fs::read_to_string(told).unwrap();
    assert_eq!(event(by_hook.lines().next().unwrap(), &name), Some(by_post));
    let capabilities = fs::read_to_string(capabilities).unwrap();
    assert!(capabilities.contains("NoNewPrivs:\t1"), "{capabilities}");
    let sets = capabilities.lines().filter(|line| line.starts_with("Cap"));
    assert!(sets.into_iter().all(|line| line.ends_with("\t0000000000000000")), "{capabilities}");
}
