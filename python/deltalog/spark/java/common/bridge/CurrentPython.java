package io.deltalog.spark;

import org.apache.spark.SparkContext;
import org.apache.spark.SparkContext$;
import scala.Option;

/**
 * The Python process that receives calls: the program that has called enable, or else a sidecar,
 * which the first call starts.
 *
 * <p>A sidecar that has died is replaced at the next call. It ends when a program has called
 * enable, but not during a call: a statement needs the process in which it has begun.
 */
final class CurrentPython {
  private PythonCalls program;
  private Sidecar sidecar;
  private int callsOfSidecar;

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
      return used.calls().call(role, method, arguments);
    } finally {
      ended(used);
    }
  }

  private synchronized PythonCalls program() {
    return program;
  }

  /** Returns the sidecar for a call, or null if it is a call of the program. */
  private synchronized Sidecar begun() {
    if (sidecar != null && !sidecar.isAlive()) {
      sidecar.end();
      sidecar = null;
    }
    if (program != null && sidecar == null) {
      return null;
    }
    if (sidecar == null) {
      Option<SparkContext> application = SparkContext$.MODULE$.getActive();
      if (application.isEmpty()) {
        throw new IllegalStateException("deltalog cannot be used after the end of the application");
      }
      sidecar = Sidecar.start(application.get().conf());
      callsOfSidecar = 0;
    }
    callsOfSidecar++;
    return sidecar;
  }

  private synchronized void ended(Sidecar used) {
    if (used == sidecar) {
      callsOfSidecar--;
      endSidecar();
    }
  }

  /** Ends the sidecar if nothing needs it. */
  private void endSidecar() {
    if (program != null && sidecar != null && callsOfSidecar == 0) {
      sidecar.end();
      sidecar = null;
    }
  }
}
