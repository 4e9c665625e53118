//! A socket that is served by threads of its own.

use std::net::{Ipv4Addr, SocketAddr};
use std::thread::JoinHandle;

use tokio::net::TcpListener;
use tokio::sync::oneshot;

/// A free port of 127.0.0.1 that is served until this is dropped.
#[derive(Debug)]
pub(super) struct Running {
    address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Running {
    /// Serves a port with the future that `serve` makes for its listener.
    ///
    /// # Panics
    ///
    /// If the system has no port or no thread left.
    pub(super) fn start<F>(serve: impl FnOnce(TcpListener) -> F + Send + 'static) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
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
                tokio::spawn(serve(listener));
                // Sent or dropped, it means the same.
                let _ = stopped.await;
            });
        });
        Self { address, stop: Some(stop), thread: Some(thread) }
    }

    pub(super) fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A panic of the thread has been printed, and fails requests; drop must not panic.
            let _ = thread.join();
        }
    }
}
