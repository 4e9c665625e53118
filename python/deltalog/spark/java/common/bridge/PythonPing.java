package io.deltalog.spark;

import java.io.IOException;
import java.net.ConnectException;
import java.net.SocketTimeoutException;
import java.util.concurrent.TimeUnit;
import py4j.Py4JException;

/** Asks Python whether it still answers, by a call that does nothing. */
final class PythonPing {
  private static final int MOST_PAUSE = 500;

  private final PythonCalls calls;
  private final int milliseconds;
  private boolean isRefused;
  private Throwable failure;

  /** Creates a ping that Python has to answer within this number of milliseconds. */
  PythonPing(PythonCalls calls, int milliseconds) {
    this.calls = calls;
    this.milliseconds = milliseconds;
  }

  /**
   * Returns whether Python answers. Returns false if Python is silent for the whole time, or if
   * nothing listens at its port. Any other failure, for example because the JVM has no free file
   * descriptor for a moment, says nothing about Python, so the ping is repeated until the time is
   * over.
   */
  boolean isAnswered() throws InterruptedException {
    long begun = System.nanoTime();
    while (true) {
      try {
        calls.ping(milliseconds);
        return true;
      } catch (IOException | Py4JException e) {
        Throwable cause = root(e);
        isRefused = cause instanceof ConnectException;
        if (isRefused || cause instanceof SocketTimeoutException) {
          failure = null;
          return false;
        }
        failure = cause;
      }
      if (System.nanoTime() - begun >= TimeUnit.MILLISECONDS.toNanos(milliseconds)) {
        return false;
      }
      Thread.sleep(Math.max(1, Math.min(milliseconds / 10, MOST_PAUSE)));
    }
  }

  private static Throwable root(Throwable thrown) {
    Throwable root = thrown;
    while (root.getCause() != null) {
      root = root.getCause();
    }
    return root;
  }

  /** Returns whether nothing listens at Python's port. */
  boolean isRefused() {
    return isRefused;
  }

  /** Returns why Python could not be asked, or null if it could. */
  Throwable failure() {
    return failure;
  }
}
