//! Tests of the exact bytes of responses.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use deltalog_testkit::s3::{ErrorAnswer, Fault, Rule, S3Server};
use object_store::path::Path;
use object_store::signer::Signer;

use crate::client::{BUCKET, client, run, server};

/// Sends a request without a signature; returns the head and the body of the response.
fn ask(server: &S3Server, line: &str, headers: &str) -> (String, String) {
    let mut stream = TcpStream::connect(server.endpoint().trim_start_matches("http://")).unwrap();
    write!(stream, "{line} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n{headers}\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.to_owned(), body.to_owned())
}

#[test]
fn an_error_has_the_id_of_its_request_and_says_when_to_try_again() {
    let server = server();
    let answer = ErrorAnswer::new("SlowDown").retry_after(3);
    server.faults([Rule::new(Fault::Error(answer))]);
    let (head, body) = ask(&server, "GET /tables/a", "");
    assert!(head.starts_with("HTTP/1.1 503 "), "{head}");
    assert!(head.contains("\r\nretry-after: 3\r\n"), "{head}");
    assert!(head.contains("\r\nx-amz-request-id: TESTKIT000000001\r\n"), "{head}");
    let error = "<Error><Code>SlowDown</Code><RequestId>TESTKIT000000001</RequestId></Error>";
    assert_eq!(body, format!(r#"<?xml version="1.0" encoding="UTF-8"?>{error}"#));
    let (head, body) = ask(&server, "HEAD /tables/a", "");
    assert!(head.starts_with("HTTP/1.1 503 ") && body.is_empty(), "{head} {body}");

    server.faults([]);
    let (head, body) = ask(&server, "GET /tables/a", "");
    assert!(head.starts_with("HTTP/1.1 403 "), "{head}");
    assert!(head.contains("\r\nx-amz-request-id: TESTKIT000000003\r\n"), "{head}");
    assert!(body.contains("<Code>AccessDenied</Code>"), "{body}");
    assert!(body.ends_with("<RequestId>TESTKIT000000003</RequestId></Error>"), "{body}");
}

#[test]
fn a_wrong_region_is_answered_with_the_right_one() {
    let server = server();
    let credential = "Credential=testkit/20260101/us-east-1/s3/aws4_request";
    let header = format!("authorization: AWS4-HMAC-SHA256 {credential}, SignedHeaders=host, Signature=0\r\n");
    for (status, code) in [(400, "AuthorizationHeaderMalformed"), (301, "PermanentRedirect")] {
        server.set(|settings| {
            settings.region = Some("eu-west-1".to_owned());
            settings.wrong_region_status = status;
        });
        let (head, body) = ask(&server, "GET /tables/a", &header);
        assert!(head.starts_with(&format!("HTTP/1.1 {status} ")), "{head}");
        assert!(head.contains("\r\nx-amz-bucket-region: eu-west-1\r\n"), "{head}");
        assert!(body.contains(&format!("<Code>{code}</Code>")), "{body}");
    }
}

#[test]
fn a_request_takes_effect_after_its_client_has_given_up() {
    let server = server();
    let client = client(&server);
    server.faults([Rule::new(Fault::LatencyMs(50))]);
    let address = server.endpoint().trim_start_matches("http://").to_owned();
    // In some of these requests, the server reads the request together with the end of its connection.
    for number in 0..100 {
        let (method, key) = ("PUT".parse().unwrap(), Path::from(format!("{number}")));
        let url = run(client.signed_url(method, &key, Duration::from_secs(600))).unwrap();
        let mut stream = TcpStream::connect(&address).unwrap();
        let line = format!("PUT {}?{} HTTP/1.1", url.path(), url.query().unwrap());
        write!(stream, "{line}\r\nhost: {address}\r\ncontent-length: 7\r\n\r\ncontent").unwrap();
    }
    let deadline = Instant::now() + Duration::from_secs(60);
    while server.requests().len() < 100 && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(1));
    }
    for number in 0..100 {
        assert_eq!(server.get_object(BUCKET, &format!("{number}")).unwrap(), "content");
    }
}

#[test]
fn a_server_that_is_dropped_is_gone() {
    let server = server();
    let address = server.endpoint().trim_start_matches("http://").to_owned();
    let mut open = TcpStream::connect(&address).unwrap();
    drop(server);
    TcpStream::connect(&address).unwrap_err();
    // The connection was closed or reset.
    assert_eq!(open.read(&mut [0]).unwrap_or(0), 0);
}
