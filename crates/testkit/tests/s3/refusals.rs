//! Tests of requests that S3 refuses.

use deltalog_testkit::s3::S3Server;
use object_store::path::Path;
use object_store::{ObjectStoreExt, Result};

use crate::client::{builder, client, run, server};

/// Asserts that a get by `client` fails, and that its message contains each of `texts`.
fn assert_refused(client: &object_store::aws::AmazonS3, texts: &[&str]) {
    let result: Result<_> = run(client.get(&Path::from("a")));
    let error = result.unwrap_err().to_string();
    for text in texts {
        assert!(error.contains(text), "{error}");
    }
}

#[test]
fn the_key_the_secret_and_the_token_must_be_right() {
    let server = server();
    let other_key = builder(&server).with_access_key_id("other").build().unwrap();
    assert_refused(&other_key, &["403", "<Code>InvalidAccessKeyId</Code>", "<RequestId>TESTKIT000000001"]);
    let other_secret = builder(&server).with_secret_access_key("other").build().unwrap();
    assert_refused(&other_secret, &["403", "<Code>SignatureDoesNotMatch</Code>"]);
    let unsigned = builder(&server).with_skip_signature(true).build().unwrap();
    assert_refused(&unsigned, &["403", "<Code>AccessDenied</Code>"]);

    server.set(|settings| settings.session_token = Some("token".to_owned()));
    assert_refused(&client(&server), &["400", "<Code>InvalidToken</Code>"]);
    let old = builder(&server).with_token("old").build().unwrap();
    assert_refused(&old, &["400", "<Code>InvalidToken</Code>"]);
    let right = builder(&server).with_token("token").build().unwrap();
    assert_refused(&right, &["404", "<Code>NoSuchKey</Code>"]);
}

#[test]
fn the_bucket_must_exist() {
    let server = S3Server::start();
    assert_refused(&client(&server), &["404", "<Code>NoSuchBucket</Code>"]);
}

#[test]
fn the_region_must_be_right_if_the_server_has_one() {
    let server = server();
    server.set(|settings| settings.region = Some("eu-west-1".to_owned()));
    let texts = ["400", "<Code>AuthorizationHeaderMalformed</Code>", "<Region>eu-west-1</Region>"];
    assert_refused(&client(&server), &texts);
    server.set(|settings| settings.wrong_region_status = 301);
    let result = run(client(&server).get(&Path::from("a")));
    result.unwrap_err();
    assert_eq!(server.requests().pop().unwrap().status, Some(301));
    let right = builder(&server).with_region("eu-west-1").build().unwrap();
    assert_refused(&right, &["404", "<Code>NoSuchKey</Code>"]);
}
