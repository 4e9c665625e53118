//! A seed completely determines a run.

use std::process::Command;

use crate::play::play;

/// The environment variable with the seed whose trace the child process prints.
const TRACED: &str = "DELTALOG_TRACED_SEED";

/// The same seed gives the same trace, byte by byte, both in this process and in another process, where the order of
/// hash maps differs.
#[test]
fn the_same_seed_gives_the_same_trace() {
    for seed in 0..12 {
        let (first, second) = (play(seed).trace.to_string(), play(seed).trace.to_string());
        assert!(!first.is_empty());
        assert_eq!(first, second, "seed {seed}");
        if seed % 4 == 0 {
            assert_eq!(first, trace_of_another_process(seed), "seed {seed} in another process");
        }
    }
    assert_ne!(play(0).trace.to_string(), play(1).trace.to_string());
}

fn trace_of_another_process(seed: u64) -> String {
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "repeat::print_a_trace", "--ignored", "--nocapture"])
        .env(TRACED, seed.to_string())
        .output()
        .unwrap();
    String::from_utf8(child.stderr).unwrap()
}

#[test]
#[ignore = "the child process of the test above"]
fn print_a_trace() {
    eprint!("{}", play(std::env::var(TRACED).unwrap().parse().unwrap()).trace);
}
