package io.deltalog.spark;

import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import org.apache.spark.SparkConf;
import org.apache.spark.SparkContext;
import org.apache.spark.SparkContext$;
import org.slf4j.LoggerFactory;
import py4j.ClientServerConnection;
import py4j.NetworkUtil;
import scala.Option;

/**
 * Ends calls of a Python process that does not answer any more: one that is stopped, that is kept
 * from running Python by native code, or that has died while its children keep its connections
 * open.
 *
 * <p>A call itself may take hours, such as a write. So the time-out is for another call, which does
 * nothing: Python answers it in its own thread, even while its other threads wait. It is made only
 * while a call takes long.
 */
final class PythonWatch implements Runnable {
  /** For how long Python may be silent; 0 for any time. */
  static final String TIMEOUT = "spark.deltalog.python.timeout";

  private static final String DEFAULT = "300s";
  private static final int LONGEST_PERIOD = 10_000;

  private final PythonCalls calls;
  private final int milliseconds = configured();

  /** The calls that wait, with the times of their beginnings. */
  private final Map<ClientServerConnection, Long> waiting = new HashMap<>();

  private final Set<ClientServerConnection> givenUp = new HashSet<>();

  private boolean isRunning;

  PythonWatch(PythonCalls calls) {
    this.calls = calls;
  }

  private static int configured() {
    Option<SparkContext> application = SparkContext$.MODULE$.getActive();
    SparkConf settings = application.isEmpty() ? new SparkConf() : application.get().conf();
    return (int) Math.min(settings.getTimeAsMs(TIMEOUT, DEFAULT), Integer.MAX_VALUE);
  }

  int milliseconds() {
    return milliseconds;
  }

  synchronized void begin(ClientServerConnection connection) {
    waiting.put(connection, System.nanoTime());
    if (!isRunning && milliseconds > 0) {
      Thread thread = new Thread(this, "deltalog-python-watch");
      thread.setDaemon(true);
      thread.start();
      isRunning = true;
    }
  }

  /** Ends the wait of a call. Returns whether it was given up, so that its connection is closed. */
  synchronized boolean end(ClientServerConnection connection) {
    waiting.remove(connection);
    return givenUp.remove(connection);
  }

  synchronized boolean hasGivenUp(ClientServerConnection connection) {
    return givenUp.contains(connection);
  }

  /** Returns the error of a call that was given up. */
  DeltalogException error() {
    return new DeltalogException(
        "Python has not answered for "
            + milliseconds / 1000.0
            + " s ("
            + TIMEOUT
            + "): the process has stopped or ended, or native code keeps it from running. What it"
            + " was doing may or may not have been committed: see DESCRIBE HISTORY",
        null,
        PythonCalls.UNKNOWN_COMMIT,
        null);
  }

  @Override
  public void run() {
    int period = Math.max(1, Math.min(milliseconds / 2, LONGEST_PERIOD));
    try {
      while (isNeeded()) {
        Thread.sleep(period);
        if (waitsLongerThan(period) && !calls.answers(milliseconds)) {
          giveUp();
        }
      }
    } catch (InterruptedException e) {
      end();
    } catch (RuntimeException e) {
      end();
      throw e;
    }
  }

  private synchronized void end() {
    isRunning = false; // Also after a failure: the next call starts another thread.
  }

  /**
   * Returns whether any call waits. The thread ends without one, and the next call starts another.
   */
  private synchronized boolean isNeeded() {
    isRunning = !waiting.isEmpty();
    return isRunning;
  }

  private synchronized boolean waitsLongerThan(int period) {
    long now = System.nanoTime();
    return waiting.values().stream().anyMatch(begun -> now - begun > period * 1_000_000L);
  }

  private synchronized void giveUp() {
    for (ClientServerConnection connection : waiting.keySet()) {
      givenUp.add(connection);
      NetworkUtil.quietlyClose(connection.getSocket());
    }
    LoggerFactory.getLogger(PythonWatch.class).warn(error().getMessage());
    calls.reportSilence();
  }
}
