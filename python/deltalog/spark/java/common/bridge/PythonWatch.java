package io.deltalog.spark;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.function.LongPredicate;
import org.apache.spark.SparkConf;
import org.apache.spark.SparkContext;
import org.apache.spark.SparkContext$;
import org.slf4j.LoggerFactory;
import py4j.ClientServerConnection;
import py4j.NetworkUtil;
import scala.Option;

/**
 * Ends calls to a Python process that no longer answers: because it is stopped, because native code
 * prevents it from running Python, or because it has died while its children keep its connections
 * open.
 *
 * <p>A call itself, such as a write, may take hours. Therefore the time limit applies to another
 * call, which does nothing: Python answers it in a separate thread, even while its other threads
 * wait. This call is only made while another call takes long.
 */
final class PythonWatch implements Runnable {
  /** The setting for how long Python may be silent; 0 for no limit. */
  static final String TIMEOUT = "spark.deltalog.python.timeout";

  private static final String DEFAULT = "300s";
  private static final int LONGEST_PERIOD = 10_000;

  private final PythonCalls calls;
  private final int milliseconds = configured();

  /** The calls that are waiting, with the times at which they began. */
  private final Map<ClientServerConnection, Long> waiting = new HashMap<>();

  /** The calls that were given up, with the reasons. */
  private final Map<ClientServerConnection, String> givenUp = new HashMap<>();

  /**
   * The time of Python's last answer to any call; at first the time when this object was created.
   */
  private long lastAnswer = System.nanoTime();

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

  /**
   * Records that a call no longer waits, whether Python has answered it or not. Returns whether the
   * call was given up; its connection is closed then.
   */
  synchronized boolean end(ClientServerConnection connection, boolean isAnswered) {
    if (isAnswered) {
      answered();
    }
    waiting.remove(connection);
    return givenUp.remove(connection) != null;
  }

  /** Records that Python has answered on any connection. */
  synchronized void answered() {
    lastAnswer = System.nanoTime();
  }

  /** Returns whether Python has answered nothing within the time-out. */
  synchronized boolean isSilent() {
    return isOver(lastAnswer);
  }

  private boolean isOver(long begun) {
    return System.nanoTime() - begun >= TimeUnit.MILLISECONDS.toNanos(milliseconds);
  }

  /** Returns why a call was given up, or null. */
  synchronized String reasonOfGivingUp(ClientServerConnection connection) {
    return givenUp.get(connection);
  }

  /**
   * Returns the reason for giving up a call. The argument is the error that prevented the JVM from
   * asking Python, or null.
   */
  String reason(Throwable failure) {
    String why =
        failure == null
            ? "the process has stopped or ended, or native code keeps it from running"
            : "it could not be asked (" + failure + ")";
    return "Python has not answered for "
        + milliseconds / 1000.0
        + " s ("
        + TIMEOUT
        + "): "
        + why
        + ". What it was doing may or may not have been committed: see DESCRIBE HISTORY";
  }

  @Override
  public void run() {
    int period = Math.max(1, Math.min(milliseconds / 2, LONGEST_PERIOD));
    try {
      while (isNeeded()) {
        Thread.sleep(period);
        if (waitsLongerThan(period)) {
          ask();
        }
      }
    } catch (InterruptedException e) {
      end();
    } catch (RuntimeException | Error e) {
      end();
      throw e;
    }
  }

  private synchronized void end() {
    // After a failure, the next call must also start a new thread.
    isRunning = false;
  }

  /**
   * Returns whether any call is waiting. If not, the thread ends, and the next call starts another
   * thread.
   */
  private synchronized boolean isNeeded() {
    isRunning = !waiting.isEmpty();
    return isRunning;
  }

  private synchronized boolean waitsLongerThan(int period) {
    long now = System.nanoTime();
    return waiting.values().stream().anyMatch(begun -> now - begun > period * 1_000_000L);
  }

  private void ask() throws InterruptedException {
    PythonPing ping = new PythonPing(calls, milliseconds);
    if (ping.isAnswered()) {
      answered();
    } else if (ping.isRefused() && calls.isEnded()) {
      giveUp(begun -> true, PythonCalls.ENDED);
    } else {
      giveUp(begun -> isSilent() && isOver(begun), reason(ping.failure()));
    }
  }

  /** Gives up the waiting calls whose start times match. */
  private synchronized void giveUp(LongPredicate matches, String reason) {
    List<ClientServerConnection> connections =
        waiting.keySet().stream().filter(call -> matches.test(waiting.get(call))).toList();
    if (connections.isEmpty()) {
      return;
    }
    for (ClientServerConnection connection : connections) {
      givenUp.put(connection, reason);
      NetworkUtil.quietlyClose(connection.getSocket());
    }
    LoggerFactory.getLogger(PythonWatch.class).warn(reason);
    calls.reportSilence();
  }
}
