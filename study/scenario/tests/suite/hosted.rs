//! Errors of hosted flows.

use crate::bad_inputs::{HEAD, PATH, check};

#[test]
fn hosted_flows() {
    for (line, key, phrase) in [
        ("", "name", "a hosted flow needs `stack`"),
        ("video = { rate = \"1mbit\" }", "video", "a hosted flow has no `video`"),
        ("host = { sack = false }", "host", "a hosted flow has no `host`"),
        ("scheduler = \"blest\"", "scheduler", "a hosted flow has no `scheduler`"),
        ("stack = \"noq\"\npaths = []", "name", "a connection needs at least one path"),
        ("stack = \"noq\"\nsize = \"0b\"", "size", "`size` must be more than zero"),
        (
            "stack = \"noq\"\nrequests = { size = \"1kB\", connection = \"new\" }",
            "requests",
            "are all on one connection",
        ),
        ("stack = \"noq\"\nrequests = { size = \"1kB\", streams = 0 }", "requests.streams", "must be more than zero"),
        ("stack = \"noq\"\nrequests = { size = \"1kB\" }\nsize = \"1kB\"", "size", "has no `size` of its own"),
        ("stack = { window = 1 }", "stack.name", "missing key `name`"),
    ] {
        let text = format!("{HEAD}{PATH}[[flow]]\nkind = \"hosted\"\nname = \"h\"\n{line}\n");
        let line_number = match key {
            "name" => 9,
            "size" if line.contains("requests") => 12,
            "size" | "requests" | "requests.streams" => 11,
            _ => 10,
        };
        check(&text, line_number, &format!("flow.h.{key}"), phrase);
    }
    for kind in ["tcp", "mptcp", "mpquic", "udp"] {
        let text = format!("{HEAD}{PATH}[[flow]]\nkind = \"{kind}\"\nname = \"f\"\nstack = \"noq\"\n");
        check(&text, 10, "flow.f.stack", &format!("{kind} flow has no `stack`"));
    }
    let text = format!("{HEAD}{PATH}[[flow]]\nname = \"f\"\nrequests = {{ size = \"1kB\", streams = 2 }}\n");
    check(&text, 9, "flow.f.requests.streams", "only the requests of a hosted flow have `streams`");
    let text = format!("{HEAD}{PATH}[tunnel]\n[[flow]]\nkind = \"hosted\"\nname = \"h\"\nstack = \"noq\"\n");
    check(&text, 10, "flow.h.name", "a hosted flow does not go into the tunnel");
}
