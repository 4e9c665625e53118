//! A small HDFS cluster in a single process, with one name node and one data node.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::installed;
use super::process::Process;

/// The class with which Hadoop starts a cluster for tests of other projects.
const MAIN: &str = "org.apache.hadoop.test.MiniDFSClusterManager";

/// A running HDFS cluster. It stops when it is dropped.
#[derive(Debug)]
pub struct Hdfs {
    process: Process,
}

impl Hdfs {
    /// Starts a cluster without files.
    ///
    /// # Panics
    /// Panics if Hadoop is not installed, or does not start.
    pub fn start() -> Self {
        let jars = installed::directory("hdfs").join("*");
        let details = RefCell::<PathBuf>::default();
        let command = |port: u16, data: &Path| {
            // Hadoop writes this file once all parts of the cluster are running.
            details.replace(data.join("details.json"));
            let mut command = Command::new(java());
            // The cluster runs only for seconds, so it is configured to start quickly.
            command.args(["-Xmx256m", "-XX:+UseSerialGC"]);
            command.arg(format!("-Dtest.build.data={}", data.display())).arg("-cp").arg(&jars).arg(MAIN);
            command.args(["-format", "-datanodes", "1", "-nnport", &port.to_string(), "-writeDetails"]);
            command.arg(data.join("details.json"));
            command
        };
        let answers = |_| details.borrow().is_file();
        Self { process: Process::start("the cluster of HDFS", command, answers) }
    }

    /// Returns the URL of the cluster's root, without a trailing slash.
    pub fn root(&self) -> String {
        format!("hdfs://127.0.0.1:{}", self.process.port())
    }

    /// Returns the directory of the server.
    pub fn directory(&self) -> &Path {
        self.process.directory()
    }
}

fn java() -> PathBuf {
    std::env::var_os("JAVA_HOME").map_or_else(|| "java".into(), |home| Path::new(&home).join("bin/java"))
}
