//! The background work of a simulated process, done by its second thread.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use deltalog::Background;
use deltalog::engine::parallel::stay_alone;
use deltalog_testkit::simulation::Process;

/// The maximum time until the second thread begins a task.
const LATEST_BEGIN_MS: u64 = 2_000;

/// How many times an ending process checks whether its second thread is done, and the time between two checks.
const LOOKS: u32 = 100;
const BETWEEN_LOOKS: Duration = Duration::from_millis(100);

/// The pause of a thread that has nothing to do. It ends earlier if the thread is woken.
const UNTIL_WOKEN: Duration = Duration::from_secs(30 * 24 * 3600);

/// The queue of tasks for a second thread. Tasks that a crashed process has left are never done.
#[derive(Default)]
pub struct Behind {
    shown: Mutex<Option<(u32, Arc<Background>)>>,
    done: AtomicU64,
}

impl Behind {
    /// Creates the queue for a process that begins.
    pub fn begin(&self, process: &Process) -> Arc<Background> {
        let queue = Arc::new(Background::stepped());
        *self.shown.lock().unwrap_or_else(PoisonError::into_inner) =
            Some((process.life(), Arc::clone(&queue)));
        queue
    }

    /// Does the background work of commits until the process has ended.
    pub fn follow(&self, second: &Process) {
        stay_alone();
        let front = second.front().expect("this runs on the second thread of a process");
        while !front.has_ended() {
            let shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner).clone();
            let did_something = shown.is_some_and(|(life, queue)| front.is_alive(life) && queue.step());
            self.done.fetch_add(did_something.into(), Ordering::Relaxed);
            let pause = if did_something { Duration::from_millis(second.below(500)) } else { UNTIL_WOKEN };
            second.sleep(pause);
        }
    }

    /// Returns how many tasks were done.
    pub fn done(&self) -> u64 {
        self.done.load(Ordering::Relaxed)
    }
}

/// Wakes the second thread of `process` if it has something to do.
pub fn wake(process: &Process, queue: &Background) {
    if !queue.is_idle() {
        process.wake_second(Duration::from_millis(process.below(LATEST_BEGIN_MS)));
    }
}

/// Waits until all background work is done, as most processes do before they end.
pub fn wait(process: &Process, queue: &Background) {
    if process.below(4) == 0 {
        return;
    }
    for _ in 0..LOOKS {
        if queue.is_idle() {
            return;
        }
        process.sleep(BETWEEN_LOOKS);
    }
}
