package io.deltalog.spark;

import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import org.apache.spark.SparkContext;
import org.apache.spark.SparkContext$;
import scala.Option;

/**
 * The Python process that receives calls: the program that has called enable, or a sidecar, which
 * the first call starts if there is no program.
 *
 * <p>A sidecar that has died is replaced at the next call. When a program calls enable, the sidecar
 * ends as soon as no call is running, because a statement needs the process in which it has begun.
 * While a sidecar starts, calls wait for it without holding a lock. If it does not start, all of
 * these calls fail.
 */
final class CurrentPython {
  private PythonCalls program;
  private Sidecar sidecar;
  private int callsOfSidecar;

  /** The sidecar that is being started, or null. */
  private CompletableFuture<Sidecar> starting;

  /** Returns the id of another process whose program receives calls and is still running, or 0. */
  int other(int process) {
    PythonCalls known = program();
    boolean isOther = known != null && known.process() != process && known.isListening();
    return isOther ? known.process() : 0;
  }

  /** Sets the program. */
  synchronized void set(PythonCalls program) {
    this.program = program;
    endSidecar();
  }

  Object call(String role, String method, Object[] arguments) throws Throwable {
    Sidecar used = begun();
    if (used == null) {
      return program().call(role, method, arguments);
    }
    try {
      return used.call(role, method, arguments);
    } finally {
      ended(used);
    }
  }

  private synchronized PythonCalls program() {
    return program;
  }

  /** Returns the sidecar that receives a call, or null if a program receives it. */
  private Sidecar begun() {
    while (true) {
      CompletableFuture<Sidecar> awaited;
      synchronized (this) {
        if (sidecar != null && !sidecar.isAlive()) {
          sidecar.end();
          sidecar = null;
        }
        if (sidecar != null) {
          callsOfSidecar++;
          return sidecar;
        }
        if (program != null) {
          return null;
        }
        if (starting == null) {
          starting = new CompletableFuture<>();
          // The sidecar is not started in this thread, because the thread's statement may be
          // cancelled while other threads wait.
          Thread thread = new Thread(this::start, "deltalog-sidecar-start");
          thread.setDaemon(true);
          thread.start();
        }
        awaited = starting;
      }
      await(awaited);
    }
  }

  private static void await(CompletableFuture<Sidecar> start) {
    try {
      start.get();
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new IllegalStateException("interrupted while Python starts for deltalog", e);
    } catch (ExecutionException e) {
      if (e.getCause() instanceof RuntimeException failure) {
        throw failure;
      }
      throw new IllegalStateException("Python cannot be started for deltalog", e.getCause());
    }
  }

  /** Starts a sidecar. If it does not start, the calls that wait for it fail. */
  private void start() {
    try {
      Option<SparkContext> application = SparkContext$.MODULE$.getActive();
      if (application.isEmpty()) {
        throw new IllegalStateException("deltalog cannot be used after the end of the application");
      }
      started(Sidecar.start(application.get().conf()), null);
    } catch (RuntimeException | Error e) {
      started(null, e);
    }
  }

  private void started(Sidecar made, Throwable failure) {
    CompletableFuture<Sidecar> awaited;
    synchronized (this) {
      sidecar = made;
      callsOfSidecar = 0;
      awaited = starting;
      starting = null;
      endSidecar(); // A program may have called enable in the meantime.
    }
    if (failure == null) {
      awaited.complete(made);
    } else {
      awaited.completeExceptionally(failure);
    }
  }

  private synchronized void ended(Sidecar used) {
    if (used == sidecar) {
      callsOfSidecar--;
      endSidecar();
    }
  }

  /** Ends the sidecar if it is no longer needed. */
  private void endSidecar() {
    if (program != null && sidecar != null && callsOfSidecar == 0) {
      sidecar.end();
      sidecar = null;
    }
  }
}
