//! Tests of each fault: the response that the client receives, and whether the request takes effect.

use std::time::Duration;

use deltalog_testkit::s3::{ErrorAnswer, Fault, Kind, Rule, S3Server, When};
use futures::TryStreamExt;
use object_store::aws::AmazonS3;
use object_store::path::Path;
use object_store::{Error, ObjectStore, ObjectStoreExt, PutMode, PutResult, Result};

use crate::client::{BUCKET, builder, client, options, retries, run, server};

/// Puts the object `t/a` if it does not exist.
async fn create(client: &AmazonS3) -> Result<PutResult> {
    client.put_opts(&Path::from("t/a"), "content".into(), PutMode::Create.into()).await
}

fn exists(server: &S3Server) -> bool {
    server.get_object(BUCKET, "t/a").is_some()
}

fn error(code: &str) -> Fault {
    Fault::Error(ErrorAnswer::new(code))
}

#[test]
fn a_connection_is_closed_before_or_after_the_effect() {
    for (fault, has_effect) in [(Fault::CloseBefore, false), (Fault::CloseAfter, true)] {
        let server = server();
        let client = client(&server);
        server.faults([Rule::new(fault).on(Kind::Create).when(When::First(1))]);
        let first = run(create(&client));
        assert!(matches!(first, Err(Error::Generic { .. })), "{first:?}");
        assert_eq!(exists(&server), has_effect);
        let requests = server.take_requests();
        assert_eq!(requests.len(), 1);
        assert_eq!((requests[0].status, requests[0].rules.as_slice()), (None, [0].as_slice()));

        let second = run(create(&client));
        match has_effect {
            true => assert!(matches!(second, Err(Error::AlreadyExists { .. })), "{second:?}"),
            false => assert!(second.is_ok(), "{second:?}"),
        }
        assert!(server.requests()[0].rules.is_empty());
    }
}

#[test]
fn there_is_no_answer_before_or_after_the_effect() {
    for (fault, has_effect) in [(Fault::SilenceBefore, false), (Fault::SilenceAfter, true)] {
        let server = server();
        let short = options().with_timeout(Duration::from_millis(100));
        let client = builder(&server).with_client_options(short).build().unwrap();
        server.faults([Rule::new(fault).on(Kind::Create)]);
        // On a slow machine, the client may give up before it has sent the request.
        while server.requests().is_empty() {
            run(create(&client)).unwrap_err();
        }
        assert_eq!(exists(&server), has_effect);
        assert_eq!(server.requests()[0].status, None);
    }
}

#[test]
fn errors_have_the_status_and_the_code_of_s3() {
    for (code, status) in [
        ("ConditionalRequestConflict", 409),
        ("SlowDown", 503),
        ("InternalError", 500),
        ("ExpiredToken", 400),
        ("RequestTimeTooSkewed", 403),
        ("AccessDenied", 403),
        ("NoSuchBucket", 404),
        ("OwnInvention", 500),
    ] {
        let server = server();
        let client = client(&server);
        server.faults([Rule::new(error(code)).on(Kind::Put)]);
        let failed = run(client.put(&Path::from("t/a"), "content".into())).unwrap_err();
        assert!(failed.to_string().contains(&format!("<Code>{code}</Code>")), "{failed}");
        assert!(!exists(&server));
        assert_eq!(server.requests()[0].status, Some(status));
    }
}

#[test]
fn an_error_may_come_after_the_effect() {
    let server = server();
    let client = client(&server);
    let answer = ErrorAnswer::new("InternalError").status(502).after_effect();
    server.faults([Rule::new(Fault::Error(answer))]);
    run(create(&client)).unwrap_err();
    assert!(exists(&server));
    assert_eq!(server.requests()[0].status, Some(502));
}

#[test]
fn listings_alone_can_be_denied() {
    let server = server();
    let client = client(&server);
    server.put_object(BUCKET, "t/a", "content");
    server.faults([Rule::new(error("AccessDenied")).on(Kind::List)]);
    run(async {
        let denied = client.list(None).try_collect::<Vec<_>>().await.unwrap_err();
        assert!(format!("{denied:?}").contains("<Code>AccessDenied</Code>"), "{denied:?}");
        client.get(&Path::from("t/a")).await.unwrap();
    });
}

#[test]
fn a_body_ends_in_the_middle() {
    let server = server();
    let content: Vec<u8> = (0..100_000).map(|at| at as u8).collect();
    server.put_object(BUCKET, "t/a", content.clone());
    server.faults([Rule::new(Fault::CutBody).on(Kind::Get).when(When::First(1))]);
    let key = Path::from("t/a");
    let whole = |client: AmazonS3| {
        let key = key.clone();
        run(async move { client.get(&key).await?.bytes().await })
    };
    whole(client(&server)).unwrap_err();
    let request = server.take_requests().pop().unwrap();
    assert_eq!((request.status, request.bytes_out), (Some(200), 50_000));

    // A client that tries again requests only the rest, whose start depends on how much has arrived.
    server.faults([Rule::new(Fault::CutBody).on(Kind::Get).when(When::First(1))]);
    let patient = builder(&server).with_retry(retries(3)).build().unwrap();
    assert_eq!(whole(patient).unwrap(), content);
    assert_eq!(server.requests().len(), 2);
}

#[test]
fn a_rule_matches_kinds_and_parts_of_keys() {
    let server = server();
    let client = client(&server);
    server.faults([Rule::new(error("SlowDown")).on(Kind::Put).on(Kind::Head).key("_delta_log/")]);
    run(async {
        let (log, data) = (Path::from("t/_delta_log/0.json"), Path::from("t/0.parquet"));
        client.put(&data, "1".into()).await.unwrap();
        client.put(&log, "1".into()).await.unwrap_err();
        client.put_opts(&log, "1".into(), PutMode::Create.into()).await.unwrap();
        client.head(&log).await.unwrap_err();
        client.head(&data).await.unwrap();
        server.faults([]);
        client.head(&log).await.unwrap();
    });
}
