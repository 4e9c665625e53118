//! Tests of latencies and speeds. They can only check minimum durations.

use std::time::{Duration, Instant};

use deltalog_testkit::s3::{Fault, Kind, Rule};
use object_store::ObjectStoreExt;
use object_store::path::Path;

use crate::client::{BUCKET, client, run, server};

#[test]
fn each_request_has_its_latency() {
    let server = server();
    let client = client(&server);
    server.put_object(BUCKET, "a", "content");
    // The latencies of the two rules add up.
    server.faults([Rule::new(Fault::LatencyMs(20)), Rule::new(Fault::LatencyMs(10)).on(Kind::Get)]);
    let began = Instant::now();
    run(async {
        client.head(&Path::from("a")).await.unwrap();
        client.get(&Path::from("a")).await.unwrap();
    });
    assert!(began.elapsed() >= Duration::from_millis(50));
    assert_eq!(server.requests().pop().unwrap().rules, [0, 1]);
}

#[test]
fn a_body_is_slow_in_both_directions() {
    let server = server();
    let client = client(&server);
    server.faults([Rule::new(Fault::BytesPerSecond(1 << 20)), Rule::new(Fault::BytesPerSecond(1 << 30))]);
    let content = vec![7; 200 << 10];
    let began = Instant::now();
    run(async {
        client.put(&Path::from("a"), content.clone().into()).await.unwrap();
        assert_eq!(client.get(&Path::from("a")).await.unwrap().bytes().await.unwrap(), content);
    });
    assert!(began.elapsed() >= Duration::from_millis(390), "{:?}", began.elapsed());
}

#[test]
fn all_requests_share_the_speed_of_the_server() {
    let server = server();
    let client = client(&server);
    server.put_object(BUCKET, "a", vec![7; 100 << 10]);
    server.set(|settings| settings.bytes_per_second = Some(1 << 20));
    let began = Instant::now();
    run(async {
        let gets = (0..4).map(|_| async { client.get(&Path::from("a")).await?.bytes().await });
        futures::future::try_join_all(gets).await.unwrap();
    });
    assert!(began.elapsed() >= Duration::from_millis(390), "{:?}", began.elapsed());
}
