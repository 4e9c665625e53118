//! Requests that clients of `object_store` do not send, such as the creation of a bucket.

use object_store::ClientOptions;
use object_store::client::{HttpConnector, HttpRequest, HttpResponse, ReqwestConnector};

/// Sends a request from any thread, and returns the status of the answer and its body.
///
/// # Panics
/// There is no answer.
pub(super) fn send(request: HttpRequest) -> (u16, String) {
    // A thread that runs tasks of one runtime cannot wait for another runtime.
    std::thread::scope(|scope| scope.spawn(|| answer_to(request)).join()).expect("an answer of a server")
}

fn answer_to(request: HttpRequest) -> (u16, String) {
    install_crypto();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let options = ClientOptions::new().with_allow_http(true);
        let client = ReqwestConnector::default().connect(&options).expect("a client");
        let answer: HttpResponse = client.execute(request).await.expect("an answer");
        let status = answer.status().as_u16();
        let body = answer.into_body().bytes().await.expect("the body of an answer");
        (status, String::from_utf8_lossy(&body).into())
    })
}

/// Makes sure that the HTTP client finds an implementation of cryptography, which it requires even without TLS.
pub(super) fn install_crypto() {
    // This fails if one is already installed.
    let _ = rustls::crypto::ring::default_provider().install_default();
}
