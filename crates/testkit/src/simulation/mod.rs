//! Processes that share a store, take turns, and fail or crash as determined by a seed.
//!
//! ```text
//!   process A ──request──┐                  ┌──► A, B or C goes on
//!   process B ──sleep────┼──► the schedule ─┤    with its request, and the fault that the seed gives it
//!   process C ──request──┘                  └──► time passes, late requests take effect
//! ```
//!
//! - A process is a thread that runs only while it has the turn. It yields the turn at each request and each pause, so
//!   everything that it does in between is one step.
//! - The clock, the pauses, the ids and the random numbers come from the simulation. A run does not wait for real time,
//!   and depends on its seed alone: the same seed gives the same [`Trace`], byte by byte.
//! - With [`Profile::real`], processes run at the same time and use their own store, such as a server that fails.
//! - A crash unwinds the thread of a process at a request. Nothing that the process does afterwards has an effect.
//!   Later, a new process replaces it.
//! - Requests come from the threads of processes only. A process must not start threads that use the store, but it may
//!   have a second one from its beginning, whose requests are scheduled like requests of other processes.

mod process;
mod profile;
mod run;
mod trace;
mod world;

pub use process::Process;
pub use profile::Profile;
pub use run::{Actor, Simulation};
pub use trace::Trace;
