//! A link between two hosts: a veth pair, with `tc`'s token bucket filter if it has a rate, or an emulated link.

use super::reaper::agent_process;
use super::{Error, Link, Shape, commands};
use link::QueueLimit;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// Size of the token bucket, bytes: five full frames, so that a late timer does not reduce the rate.
const BURST: u32 = 5 * 1514;

#[derive(Debug)]
pub(super) enum RunningLink {
    Veth,
    Emulated(Process),
}

impl RunningLink {
    pub(super) fn create(agent: &[&str], index: usize, hosts: [&str; 2], link: &Link) -> Result<Self, Error> {
        let shapes = [&link.forward, &link.reverse];
        if !shapes.iter().all(|shape| shape.is_rate_only()) {
            return Process::start(agent, index, hosts, shapes).map(Self::Emulated);
        }
        let device = commands::device(index);
        let [left, right] = hosts;
        commands::run(&format!("ip -n {left} link add {device} type veth peer name {device} netns {right}"))?;
        for (host, shape) in hosts.into_iter().zip(shapes) {
            shape_with_tc(host, &device, shape)?;
        }
        Ok(Self::Veth)
    }

    pub(super) fn change(&mut self, arguments: &str) -> Result<(), Error> {
        match self {
            Self::Veth => Err(Error::Link("the link is not emulated; give it a delay or an mtu".into())),
            Self::Emulated(process) => process.change(arguments),
        }
    }
}

/// Adds a token bucket filter to a device whose link has a rate, with offloads off: packets leave one by one.
fn shape_with_tc(host: &str, device: &str, shape: &Shape) -> Result<(), Error> {
    let Some(rate) = shape.pipe.rate else { return Ok(()) };
    let line = format!("ethtool -K {device} tso off gso off gro off tx-udp-segmentation off");
    commands::finish(commands::in_namespace(host, "ethtool").args(line.split(' ').skip(1)), &line)?;
    let limit = match shape.pipe.queue.limit {
        QueueLimit::Time(span) => rate.bytes_in(span),
        QueueLimit::Bytes(bytes) => bytes,
        QueueLimit::Packets(packets) => packets * 1514,
    };
    let limit = u64::from(BURST) + limit;
    let tc = format!("tc -n {host} qdisc add dev {device} root tbf rate {}bit burst {BURST} limit {limit}", rate.0);
    commands::run(&tc).map(drop)
}

/// The process of an emulated link.
#[derive(Debug)]
pub(super) struct Process {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
}

impl Process {
    fn start(agent: &[&str], index: usize, hosts: [&str; 2], shapes: [&Shape; 2]) -> Result<Self, Error> {
        let device = commands::device(index);
        let mut command = realtime_agent(agent);
        command.args(["link", hosts[0], &device, hosts[1], &device]);
        command.args(shapes[0].to_string().split_whitespace()).arg("/");
        command.args(shapes[1].to_string().split_whitespace());
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().map_err(|error| Error::command(&agent.join(" "), error))?;
        let (stdin, stdout) = (child.stdin.take(), BufReader::new(child.stdout.take().expect("it is piped")));
        let mut process = Self { child, stdin, stdout };
        match process.answer()?.as_str() {
            "ready" => Ok(process),
            answer => Err(Error::Link(format!("the link's process answered `{answer}`, not `ready`"))),
        }
    }

    fn change(&mut self, arguments: &str) -> Result<(), Error> {
        let link_error = |error: std::io::Error| Error::Link(error.to_string());
        let stdin = self.stdin.as_mut().expect("it is open until the end");
        writeln!(stdin, "{arguments}").and_then(|()| stdin.flush()).map_err(link_error)?;
        match self.answer()?.as_str() {
            "done" => Ok(()),
            answer => Err(Error::Link(answer.to_owned())),
        }
    }

    fn answer(&mut self) -> Result<String, Error> {
        let mut line = String::new();
        match self.stdout.read_line(&mut line) {
            Ok(0) => Err(Error::Link("its process ended".into())),
            Ok(_) => Ok(line.trim_end().to_owned()),
            Err(error) => Err(Error::Link(error.to_string())),
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        drop(self.stdin.take());
        let _ = self.child.wait();
    }
}

/// The agent with a real-time priority if that is allowed, so that an emulated link does not wait for the processes
/// that use it.
fn realtime_agent(agent: &[&str]) -> Command {
    if commands::run("chrt --rr 1 true").is_err() {
        return agent_process(agent);
    }
    agent_process(&[&["chrt", "--rr", "1"], agent].concat())
}
