//! Serves a port on its own threads.

use std::error::Error;
use std::net::{Ipv4Addr, SocketAddr};
use std::thread::JoinHandle;
use std::time::Duration;

use bytes::Bytes;
use hyper::body::{Body, Incoming};
use hyper::server::conn::http1;
use hyper::service::Service;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;
use tokio::sync::oneshot;

type AnyError = Box<dyn Error + Send + Sync>;

/// A free port of 127.0.0.1, which is served until this value is dropped.
#[derive(Debug)]
pub(super) struct Running {
    address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Running {
    /// Answers the requests to a port by calling `service`. If `service` returns an error, the connection is closed.
    ///
    /// # Panics
    ///
    /// Panics if the system has no free port or cannot start a thread.
    pub(super) fn start<S, B>(service: S) -> Self
    where
        S: Service<Request<Incoming>, Response = Response<B>, Error: Into<AnyError>, Future: Send>,
        S: Clone + Send + 'static,
        B: Body<Data = Bytes, Error: Into<AnyError>> + Send + 'static,
    {
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port is free");
        listener.set_nonblocking(true).expect("the socket can be made non-blocking");
        let address = listener.local_addr().expect("the socket has an address");
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .thread_name("s3-server")
            .enable_io()
            .enable_time()
            .build()
            .expect("a runtime can be made");
        let (stop, stopped) = oneshot::channel();
        let thread = std::thread::spawn(move || {
            runtime.block_on(async move {
                let listener = TcpListener::from_std(listener).expect("the socket is usable");
                tokio::spawn(listen(listener, service));
                // Both a message and a dropped sender mean that the server should stop.
                let _ = stopped.await;
            });
        });
        Self { address, stop: Some(stop), thread: Some(thread) }
    }

    pub(super) fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }
}

/// Accepts connections until the runtime shuts down.
async fn listen<S, B>(listener: TcpListener, service: S)
where
    S: Service<Request<Incoming>, Response = Response<B>, Error: Into<AnyError>, Future: Send>,
    S: Clone + Send + 'static,
    B: Body<Data = Bytes, Error: Into<AnyError>> + Send + 'static,
{
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            // The client may be gone, or too many files may be open. In the latter case, some must be closed first.
            tokio::time::sleep(Duration::from_millis(1)).await;
            continue;
        };
        // Without this setting, small responses may be delayed by 40 ms.
        let _ = stream.set_nodelay(true);
        let service = service.clone();
        tokio::spawn(async move {
            // Without `half_close`, a request would be discarded if its client gives up right after sending it, so that
            // the server reads the end of the connection together with the request's body. Errors of the connection
            // are ignored here, because the client notices them.
            http1::Builder::new().half_close(true).serve_connection(TokioIo::new(stream), service).await
        });
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // If the thread has panicked, the message has been printed and requests fail. A second panic in drop must
            // be avoided.
            let _ = thread.join();
        }
    }
}
