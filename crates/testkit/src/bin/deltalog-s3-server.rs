//! A server for S3 for tests in other languages.
//!
//! It prints one line of JSON with the URLs of S3 (`endpoint`) and of its control (`control`, see
//! [`Controlled`](deltalog_testkit::s3::Controlled)), and ends when its standard input is closed: when the tests that
//! have started it end, however they do.

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
