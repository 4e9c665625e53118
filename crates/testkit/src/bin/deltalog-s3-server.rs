//! Runs an S3 server for tests that are written in other languages.
//!
//! It prints one line of JSON with the URLs of its S3 interface (`endpoint`) and of its control interface (`control`,
//! see [`Controlled`](deltalog_testkit::s3::Controlled)). It ends when its standard input is closed, that is, when
//! the tests that have started it end for any reason.

use std::io::{self, Read, Write};

use deltalog_testkit::s3::{Controlled, S3Server};

fn main() -> io::Result<()> {
    let server = Controlled::new(S3Server::start());
    let started = serde_json::json!({"endpoint": server.endpoint(), "control": server.control()});
    let mut output = io::stdout().lock();
    writeln!(output, "{started}")?;
    output.flush()?;
    drop(output);
    let mut input = io::stdin().lock();
    while input.read(&mut [0; 64])? > 0 {}
    Ok(())
}
