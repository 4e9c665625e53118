//! Tests of the S3 server, with `object_store` as its client.

mod client;
mod counts;
mod faults;
mod multipart;
mod operations;
mod racers;
mod raw;
mod refusals;
mod slowness;
