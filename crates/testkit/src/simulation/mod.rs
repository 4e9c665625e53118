//! Simulated processes that share a store and take turns. A seed determines how they fail or crash.
//!
//! ```text
//!   process A ──request──┐                  ┌──► A, B or C goes on
//!   process B ──sleep────┼──► the schedule ─┤    with its request, and the fault that the seed gives it
//!   process C ──request──┘                  └──► time passes, late requests take effect
//! ```
//!
//! - A process is a thread that runs only while it has the turn. It yields the turn at each request and each pause,
//!   so everything that it does in between is a single step.
//! - The clock, pauses, ids and random numbers come from the simulation. A run does not wait for real time, and
//!   depends only on its seed: the same seed results in the same [`Trace`], byte by byte.
//! - With [`Profile::real`], processes run concurrently and use their own store, such as a server that fails.
//! - A crash unwinds the thread of a process at a request. Nothing that the process does after that has an effect.
//!   Later, a new process replaces it.
//! - Only the threads of processes may send requests. A process must not start threads that use the store. But it may
//!   have a second thread from its beginning, whose requests are scheduled like the requests of another process.

mod process;
mod profile;
mod run;
mod trace;
mod world;

pub use process::Process;
pub use profile::Profile;
pub use run::{Actor, Simulation};
pub use trace::Trace;
