//! Sends requests that clients of `object_store` do not send, such as creating a bucket.

use object_store::ClientOptions;
use object_store::client::{HttpConnector, HttpRequest, HttpResponse, ReqwestConnector};

/// Sends a request. Can be called on any thread. Returns the status and the body of the response.
///
/// # Panics
/// Panics if there is no response.
pub(super) fn send(request: HttpRequest) -> (u16, String) {
    // A thread that runs tasks of an async runtime must not block on another runtime, so a separate thread sends the
    // request.
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

/// Makes sure that the HTTP client finds a cryptography provider, which it requires even for connections without TLS.
pub(super) fn install_crypto() {
    // This fails if a provider is already installed, which is not a problem.
    let _ = rustls::crypto::ring::default_provider().install_default();
}
