//! Tests that every kind of store meets the same contract: a local directory, this repository's S3 server, and the
//! servers of other projects.
//!
//! Each case is a function of a [`places::Place`]; `on_every_store` turns it into one test per store. The servers
//! start with the first test that needs them, and end with the process. Each test has its own bucket.

#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    unreachable_pub,
    missing_docs,
    reason = "tests"
)]

/// Turns functions with one parameter, a place in a store, into tests.
macro_rules! on_every_store {
    ($($case:ident),* $(,)?) => {
        on_every_store! { local, [$($case),*] }
        on_every_store! { s3_server, [$($case),*] }
        on_every_store! { versitygw, [$($case),*] }
        on_every_store! { azurite, [$($case),*] }
        on_every_store! { fake_gcs, [$($case),*] }
        on_every_store! { dynamodb, [$($case),*] }
        on_every_store! { hdfs, [$($case),*] }
    };
    ($store:ident, [$($case:ident),*]) => {
        mod $store {
            use crate::places::Place;

            $(
                #[test]
                fn $case() {
                    super::$case(&Place::$store());
                }
            )*
        }
    };
}

mod contract;
mod coordinated;
mod credentials;
mod golden;
mod jvm_writers;
mod killed;
#[path = "../kills/mod.rs"]
mod kills;
mod maintenance;
mod markers;
mod names;
mod places;
mod refusals;
mod rows;
mod tables;
mod uploads;
mod walks;
mod weak_tags;
mod writers;
