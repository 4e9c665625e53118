//! A server as a child process that never outlives this process.
//!
//! A shell starts the server, and then waits for the end of its own standard input. This is a pipe whose other end
//! only the test process holds, so it ends when the value is dropped, or when the test process ends for any reason.
//! The shell then kills the server and removes its directory. If the server ends by itself, the shell ends with the
//! same status.

use std::hash::{BuildHasher, RandomState};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// The script of the shell. Its first argument is the server's directory, and the others are the server's command. A
/// status of 137 means that the server was killed. Otherwise, the directory is kept, because it contains the log.
const GUARD: &str = r#"
directory=$0
exec 3<&0
"$@" </dev/null 3<&- >"$directory/log" 2>&1 &
server=$!
{ read -r line <&3; kill -9 $server; } 2>/dev/null &
watch=$!
wait $server
status=$?
kill $watch 2>/dev/null
[ $status -ne 137 ] || rm -rf "$directory"
exit $status
"#;

/// The maximum time that a server may take until it responds.
const PATIENCE: Duration = Duration::from_secs(120);

/// How often a server is started again on another port because another process has taken the port.
const PORTS: usize = 5;

/// A running server.
#[derive(Debug)]
pub(super) struct Process {
    guard: Child,
    directory: TempDir,
    port: u16,
}

impl Process {
    /// Starts a server on a free port, and waits until it responds.
    ///
    /// `command` returns the server's command for a port and an empty directory. `answers` returns whether it is this
    /// server that responds on the port, and not another server that has taken the port.
    ///
    /// # Panics
    /// Panics if the server ends, or does not respond for two minutes. The message contains the server's log.
    pub(super) fn start(
        name: &str,
        command: impl Fn(u16, &Path) -> Command,
        answers: impl Fn(u16) -> bool,
    ) -> Self {
        let mut refused = String::new();
        for _ in 0..PORTS {
            match Self::start_on(free_port(), &command, &answers) {
                Ok(process) => return process,
                Err(log) if log.to_lowercase().contains("address already in use") => refused = log,
                Err(log) => panic!("{name} does not run: {log}"),
            }
        }
        panic!("{name} found no free port: {refused}");
    }

    /// Starts the server on a port. If it does not run, returns the reason and its log.
    fn start_on(
        port: u16,
        command: &impl Fn(u16, &Path) -> Command,
        answers: &impl Fn(u16) -> bool,
    ) -> Result<Self, String> {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let data = directory.path().join("data");
        std::fs::create_dir(&data).expect("a directory for the data of a server");
        let command = command(port, &data);
        let mut guard = Command::new("sh");
        guard.arg("-c").arg(GUARD).arg(directory.path()).arg(command.get_program()).args(command.get_args());
        guard.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let guard = guard.spawn().expect("a shell");
        let mut process = Self { guard, directory, port };
        let start = Instant::now();
        while !answers(port) {
            if let Some(status) = process.guard.try_wait().expect("the status of a child") {
                return Err(format!("it ended with {status}:\n{}", process.log()));
            }
            if start.elapsed() > PATIENCE {
                return Err(format!("it does not answer:\n{}", process.log()));
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(process)
    }

    pub(super) fn port(&self) -> u16 {
        self.port
    }

    pub(super) fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// Returns the server's output.
    pub(super) fn log(&self) -> String {
        let path = self.directory.path().join("log");
        std::fs::read(path).map_or_else(|error| error.to_string(), |log| String::from_utf8_lossy(&log).into())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        drop(self.guard.stdin.take());
        // If another process has killed the guard and waited for it, the guard no longer exists.
        let _ = self.guard.wait();
    }
}

/// Returns a name that nothing else on this machine uses.
pub(super) fn unique(prefix: &str) -> String {
    format!("{prefix}{:016x}", RandomState::new().hash_one(std::process::id()))
}

fn free_port() -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
    listener.local_addr().expect("the address of a socket").port()
}

/// Requests `path` and returns the first line of the response; `None` if there is no response.
pub(super) fn status_line(port: u16, path: &str) -> Option<String> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let mut stream = TcpStream::connect_timeout(&address, Duration::from_secs(1)).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(5))).ok()?;
    write!(stream, "GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n\r\n").ok()?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).ok()?;
    Some(String::from_utf8_lossy(&answer).lines().next()?.to_owned())
}
