//! Manages the inputs to mutate. If the code was compiled with coverage counters, inputs that reach new code are
//! mutated as well, and kept for later runs in `target/tmp/fuzz-corpus`.

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::PathBuf;

use deltalog_testkit::coverage::Coverage;

/// The maximum length of inputs that are mutated again. Short inputs reach the same code sooner.
const LONGEST: usize = 128 << 10;

pub struct Guide {
    inputs: Vec<Vec<u8>>,
    covered: Coverage,
    directory: PathBuf,
}

impl Guide {
    /// Returns the inputs of `corpus`, and the inputs that earlier runs have found.
    pub fn new(target: &str, corpus: &[Vec<u8>]) -> Self {
        let directory = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("fuzz-corpus").join(target);
        let mut inputs = corpus.to_vec();
        if Coverage::is_counted() {
            fs::create_dir_all(&directory).unwrap();
            let mut files: Vec<PathBuf> =
                fs::read_dir(&directory).unwrap().map(|entry| entry.unwrap().path()).collect();
            files.sort();
            inputs.extend(files.iter().map(|file| fs::read(file).unwrap()));
        }
        Self { inputs, covered: Coverage::default(), directory }
    }

    pub fn inputs(&self) -> &[Vec<u8>] {
        &self.inputs
    }

    /// Records which code an input of [`Self::inputs`] reaches.
    pub fn learn(&mut self, run: impl FnOnce()) {
        Coverage::begin();
        run();
        self.covered.add();
    }

    /// Runs a new input, and keeps it if it reaches new code.
    pub fn try_out(&mut self, input: &[u8], run: impl FnOnce()) {
        Coverage::begin();
        run();
        if self.covered.add() && input.len() <= LONGEST {
            let mut hasher = DefaultHasher::new();
            input.hash(&mut hasher);
            fs::write(self.directory.join(format!("{:016x}", hasher.finish())), input).unwrap();
            self.inputs.push(input.to_vec());
        }
    }

    /// Describes which code was reached.
    pub fn reached(&self) -> String {
        if Coverage::is_counted() {
            format!(", {} edges, {} inputs to mutate", self.covered.edges(), self.inputs.len())
        } else {
            String::new()
        }
    }
}
