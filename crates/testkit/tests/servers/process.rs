//! Tests that servers end together with the process that has started them, however it ends.

use std::io::{BufRead, BufReader, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use deltalog_testkit::servers::VersityGw;

#[test]
fn a_server_ends_when_it_is_dropped() {
    let server = VersityGw::start();
    let (address, directory) = (server.endpoint().replace("http://", ""), server.directory().to_owned());
    assert!(directory.is_dir());
    TcpStream::connect(&address).unwrap();
    drop(server);
    assert!(!directory.exists());
    wait_until_gone(&address, &directory);
}

/// A killed process cannot drop any values.
#[test]
fn a_server_ends_when_its_process_is_killed() {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "process::start_and_wait", "--ignored", "--nocapture"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let said = lines.map(Result::unwrap).find_map(|line| line.strip_prefix("started ").map(str::to_owned));
    let said = said.expect("the child has started a server");
    let (address, directory) = said.split_once(' ').unwrap();
    TcpStream::connect(address).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    wait_until_gone(address, Path::new(directory));
}

/// Waits until nothing responds at `address` and `directory` is gone. Another server may take the port for a while.
fn wait_until_gone(address: &str, directory: &Path) {
    let start = Instant::now();
    while TcpStream::connect(address).is_ok() || directory.exists() {
        assert!(start.elapsed() < Duration::from_secs(60), "the server runs without its process");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
#[ignore = "a child process of the test above"]
fn start_and_wait() {
    let server = VersityGw::start();
    let (address, directory) = (server.endpoint().replace("http://", ""), server.directory().display());
    writeln!(std::io::stdout(), "\nstarted {address} {directory}").unwrap();
    // Waits until the parent process ends.
    std::io::stdin().read_line(&mut String::new()).unwrap();
}
