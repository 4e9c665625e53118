//! Mutates real files, one mutation after another, until the time is up.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use deltalog_testkit::measure;

use crate::guide::Guide;

/// The memory that a parser may use for any input, in addition to the memory per byte of the input.
const MOST_BYTES: usize = 64 << 20;
/// The memory allowed per byte of input, for compression and Arrow's builders.
const BYTES_PER_BYTE: usize = 1024;
/// The time limit of one input, for a build without optimization on a busy machine.
const LONGEST: Duration = Duration::from_secs(20);

/// A SplitMix64 generator of random numbers.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit.max(1) as u64) as usize
    }
}

/// Runs `parse` on mutations of `corpus`. Fails if `parse` panics, takes too long or uses too much memory.
pub fn fuzz(target: &str, corpus: &[Vec<u8>], parse: impl Fn(&[u8])) {
    assert!(!corpus.is_empty(), "{target} has no corpus");
    let variable = |name: &str| std::env::var(name).ok().and_then(|value| value.parse::<u64>().ok());
    let budget = Duration::from_secs(variable("DELTALOG_HOSTILE_SECONDS").unwrap_or(2));
    let first = variable("DELTALOG_HOSTILE_SEED").unwrap_or_default();
    if let Some(file) = std::env::var_os("DELTALOG_HOSTILE_INPUT") {
        return run(target, "DELTALOG_HOSTILE_INPUT", &fs::read(file).unwrap(), &parse);
    }
    let start = Instant::now();
    let mut guide = Guide::new(target, corpus);
    // The files are also parsed without a mutation.
    for input in guide.inputs().to_vec() {
        guide.learn(|| run(target, "the corpus", &input, &parse));
    }
    let mut seed = first;
    while start.elapsed() < budget || seed - first < 50 {
        let input = mutated(guide.inputs(), seed);
        guide.try_out(&input, || run(target, &format!("DELTALOG_HOSTILE_SEED={seed}"), &input, &parse));
        seed += 1;
    }
    eprintln!("{target}: {} inputs in {:.1?}{}", seed - first, start.elapsed(), guide.reached());
}

fn run(target: &str, name: &str, input: &[u8], parse: &impl Fn(&[u8])) {
    let start = Instant::now();
    let (outcome, held) = measure(|| catch_unwind(AssertUnwindSafe(|| parse(input))));
    let most = MOST_BYTES + input.len() * BYTES_PER_BYTE;
    let fault = match outcome {
        Err(panic) => {
            let text = panic
                .downcast_ref::<String>()
                .cloned()
                .or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
            Some(format!("panicked: {}", text.unwrap_or_default()))
        }
        Ok(()) if held > most => Some(format!("held {held} bytes")),
        Ok(()) if start.elapsed() > LONGEST => Some(format!("took {:?}", start.elapsed())),
        Ok(()) => None,
    };
    if let Some(fault) = fault {
        let file = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("hostile-{target}"));
        fs::write(&file, input).unwrap();
        panic!("{target} with {name} ({} bytes, kept as {}) {fault}", input.len(), file.display());
    }
}

/// Returns a mutation of a file in `corpus`. `seed` determines the file and the mutation.
fn mutated(corpus: &[Vec<u8>], seed: u64) -> Vec<u8> {
    let random = &mut Random::new(seed.wrapping_mul(0x2545_f491_4f6c_dd1d));
    let mut bytes = corpus[random.below(corpus.len())].clone();
    for _ in 0..1 + random.below(4) {
        mutate(&mut bytes, corpus, random);
    }
    bytes
}

fn mutate(bytes: &mut Vec<u8>, corpus: &[Vec<u8>], random: &mut Random) {
    const LENGTHS: [u64; 10] =
        [0, 1, 0x7f, 0xff, 0x7fff, 0xffff, 0x7fff_ffff, 0xffff_ffff, 0x7fff_ffff_ffff_ffff, u64::MAX];
    const TEXTS: [&str; 22] = [
        "null",
        "-1",
        "0",
        "1e400",
        "-9223372036854775809",
        "18446744073709551616",
        "\"\"",
        "{}",
        "[]",
        "[[[[[[[[[[",
        "{\"a\":",
        "\\u0000",
        "\\ud800",
        "\"../../x\"",
        "%2e%2e/",
        "file:///etc/passwd",
        "\u{0}",
        "\n",
        "9999999999999999",
        "true",
        "(((((((((",
        "CAST(",
    ];
    // Damage at the end of a file changes its footer; damage at the start changes its magic number.
    let length = bytes.len();
    let at = match random.below(4) {
        0 => length.saturating_sub(1 + random.below(64.min(length.max(1)))),
        1 => random.below(32.min(length.max(1))),
        _ => random.below(length.max(1)),
    };
    let range = |random: &mut Random| {
        let most = 1 << random.below(12);
        at.min(length)..(at + 1 + random.below(most)).min(length)
    };
    match random.below(10) {
        0 | 1 if at < length => bytes[at] ^= 1 << random.below(8),
        2 if at < length => bytes[at] = [0, 1, 0x7f, 0x80, 0xff, b'"', b'{', b'9'][random.below(8)],
        3 => bytes.truncate(at),
        4 => drop(bytes.drain(range(random))),
        5 => {
            let copy = bytes[range(random)].to_vec();
            let times = 1 + random.below(3);
            bytes.splice(at.min(length)..at.min(length), copy.repeat(times));
        }
        6 => {
            let value = LENGTHS[random.below(LENGTHS.len())];
            let width = [1, 2, 4, 8][random.below(4)];
            let value = if random.below(2) == 0 {
                value.to_le_bytes()[..width].to_vec()
            } else {
                value.to_be_bytes()[8 - width..].to_vec()
            };
            let end = (at + width).min(length);
            bytes.splice(at.min(end)..end, value);
        }
        7 => {
            let other = &corpus[random.below(corpus.len())];
            let from = random.below(other.len().max(1));
            let part =
                other.get(from..(from + 1 + random.below(256)).min(other.len())).unwrap_or_default().to_vec();
            let end = if random.below(2) == 0 { at.min(length) } else { range(random).end };
            bytes.splice(at.min(end)..end, part);
        }
        8 => {
            let text = TEXTS[random.below(TEXTS.len())];
            let end = if random.below(2) == 0 { at.min(length) } else { range(random).end };
            bytes.splice(at.min(end)..end, text.bytes());
        }
        _ => {
            // Replaces a number in the text with another number.
            let digit = bytes.iter().skip(at).position(u8::is_ascii_digit).map(|more| at + more);
            if let Some(digit) = digit {
                let end = digit + bytes[digit..].iter().take_while(|byte| byte.is_ascii_digit()).count();
                let number = [
                    random.next().to_string(),
                    "0".to_owned(),
                    "-7".to_owned(),
                    "9".repeat(1 + random.below(40)),
                ];
                bytes.splice(digit..end, number[random.below(4)].bytes());
            }
        }
    }
}
