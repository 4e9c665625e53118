package io.deltalog.spark;

import java.io.IOException;
import java.net.InetAddress;
import java.security.SecureRandom;
import java.util.HexFormat;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.spark.SparkConf;
import org.apache.spark.SparkContext;
import org.apache.spark.SparkContext$;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import py4j.ClientServer;
import scala.Option;

/**
 * A Python process for a JVM in which no Python program has called enable, as in spark-sql,
 * spark-shell and Java jobs.
 *
 * <p>It is started in the same way as spark-submit starts a Python program, and connects to this
 * JVM through a port of the loopback interface with a token. It ends when its standard input is
 * closed, which happens when the JVM ends.
 *
 * <p>If the process ends earlier, or no longer answers, the jobs of its calls are cancelled,
 * because their rows could no longer be committed.
 */
public final class Sidecar {
  private static final Logger LOG = LoggerFactory.getLogger(Sidecar.class);
  private static final String NAME = "deltalog-sidecar";
  private static final String[] COMMAND = {"-m", "deltalog.spark.sidecar"};
  private static final int MOST_SECONDS = 120;
  private static final int CANCEL_EVERY_MILLISECONDS = 200;

  /** The SQLSTATE of a connection that cannot be made. */
  private static final String NO_CONNECTION = "08001";

  private final Interpreter interpreter;
  private final CompletableFuture<PythonCalls> connected = new CompletableFuture<>();
  private final ClientServer server;
  private final String tag = NAME + "-" + UUID.randomUUID();
  private final AtomicInteger running = new AtomicInteger();
  private volatile boolean isSilent;
  private Process process;
  private ProcessOutput output;

  private Sidecar(Interpreter interpreter, String token) {
    this.interpreter = interpreter;
    this.server = inDaemon(() -> served(this, token));
  }

  /** Starts a process, and returns it when it is ready for calls. */
  static Sidecar start(SparkConf settings) {
    byte[] random = new byte[32];
    new SecureRandom().nextBytes(random);
    String token = HexFormat.of().formatHex(random);
    Sidecar started = new Sidecar(Interpreter.of(settings, System.getenv()), token);
    try {
      started.launch(token);
      started.await();
      var unused = started.process.onExit().thenRunAsync(started::cancelJobs);
      return started;
    } catch (RuntimeException e) {
      started.end();
      throw e;
    }
  }

  /** Returns the server through which Python calls this JVM. */
  private static ClientServer served(Sidecar entry, String token) {
    ClientServer made =
        new ClientServer.ClientServerBuilder(entry)
            .authToken(token)
            .javaAddress(InetAddress.getLoopbackAddress())
            .javaPort(0)
            .build();
    made.startServer();
    return made;
  }

  /**
   * Runs something in a daemon thread. Otherwise threads of py4j would keep the JVM alive, because
   * they are daemons only if the thread that creates the server is one. They also inherit its class
   * loader.
   */
  private static <T> T inDaemon(Callable<T> work) {
    FutureTask<T> task = new FutureTask<>(work);
    Thread thread = new Thread(task, NAME);
    thread.setDaemon(true);
    thread.setContextClassLoader(Sidecar.class.getClassLoader());
    thread.start();
    try {
      return task.get();
    } catch (InterruptedException e) {
      throw interrupted(e);
    } catch (ExecutionException e) {
      throw new IllegalStateException("deltalog cannot listen for Python: " + e.getCause(), e);
    }
  }

  private static RuntimeException interrupted(InterruptedException e) {
    Thread.currentThread().interrupt();
    return new IllegalStateException("interrupted while Python starts for deltalog", e);
  }

  private void launch(String token) {
    ProcessBuilder builder = new ProcessBuilder(interpreter.command(), COMMAND[0], COMMAND[1]);
    Map<String, String> environment = builder.environment();
    environment.put(
        "PYSPARK_GATEWAY_PORT", String.valueOf(server.getJavaServer().getListeningPort()));
    environment.put("PYSPARK_GATEWAY_SECRET", token);
    environment.put("PYSPARK_PIN_THREAD", "true");
    environment.put("PYSPARK_PYTHON", interpreter.ofWorkers());
    environment.put("PYTHONIOENCODING", "utf-8");
    // The process must not import modules from the working directory.
    environment.put("PYTHONSAFEPATH", "1");
    // PySpark raises such warnings for each version of pandas.
    environment.putIfAbsent("PYTHONWARNINGS", "ignore::FutureWarning");
    // These variables would make PySpark a client of Spark Connect.
    environment.keySet().removeIf(name -> name.startsWith("SPARK_CONNECT_MODE"));
    environment.remove("SPARK_REMOTE");
    environment.remove("SPARK_LOCAL_REMOTE");
    environment.remove("SPARK_API_MODE");
    builder.redirectErrorStream(true);
    try {
      process = builder.start();
    } catch (IOException e) {
      throw failed("cannot be started (" + e.getMessage() + ")", e);
    }
    output = ProcessOutput.reading(process.getInputStream(), LOG, NAME + "-output");
  }

  private void await() {
    try {
      CompletableFuture.anyOf(connected, process.onExit()).get(MOST_SECONDS, TimeUnit.SECONDS);
      if (!connected.isDone()) {
        String status = "has ended with the exit status " + process.exitValue();
        throw failed(status + ": " + output.lastLine(), null);
      }
    } catch (InterruptedException e) {
      throw interrupted(e);
    } catch (TimeoutException e) {
      throw failed("has not connected within " + MOST_SECONDS + " s", e);
    } catch (ExecutionException e) {
      throw new IllegalStateException(e); // These futures are never completed exceptionally.
    }
  }

  private DeltalogException failed(String how, Throwable cause) {
    String command = interpreter.command() + " " + String.join(" ", COMMAND);
    return new DeltalogException(
        "deltalog needs a Python process beside this JVM, but `"
            + command
            + "` "
            + how
            + ". Set "
            + Interpreter.SETTING
            + " to the path of a Python that has deltalog "
            + Version.WHEEL
            + " and PySpark",
        null,
        NO_CONNECTION,
        cause);
  }

  /** Receives the connection to Python, which calls this method. */
  public void connected(PythonCalls calls) {
    calls.whenSilent(this::kill);
    connected.complete(calls);
  }

  /** Returns the version of Spark, which Python compares with PySpark's. */
  public String sparkVersion() {
    return org.apache.spark.package$.MODULE$.SPARK_VERSION();
  }

  /** Calls Python. During the call, the jobs of this thread have the tag of this process. */
  Object call(String role, String method, Object[] arguments) throws Throwable {
    Option<SparkContext> application = SparkContext$.MODULE$.getActive();
    // An enclosing call may have set the tag already.
    boolean isTagged = application.isEmpty() || application.get().getJobTags().contains(tag);
    if (!isTagged) {
      application.get().addJobTag(tag);
    }
    running.incrementAndGet();
    try {
      return connected.join().call(role, method, arguments);
    } finally {
      running.decrementAndGet();
      if (!isTagged) {
        application.get().removeJobTag(tag);
      }
    }
  }

  /**
   * Cancels the jobs of the running calls, and repeats this until these calls have ended, because
   * one may be about to start a job.
   */
  private void cancelJobs() {
    try {
      Option<SparkContext> application = SparkContext$.MODULE$.getActive();
      while (running.get() > 0 && !application.isEmpty() && !application.get().isStopped()) {
        application.get().cancelJobsWithTag(tag);
        Thread.sleep(CANCEL_EVERY_MILLISECONDS);
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    } catch (RuntimeException e) {
      // No call waits for these jobs: each ends by itself, and its result is refused.
      LOG.warn("deltalog could not cancel the jobs of a Python process that has ended", e);
    }
  }

  boolean isAlive() {
    return !isSilent && process.isAlive();
  }

  private void kill() {
    isSilent = true;
    process.destroyForcibly();
  }

  /** Ends the process, even if it is stopped, and the server. */
  void end() {
    if (process != null) {
      process.destroyForcibly();
    }
    server.shutdown();
  }
}
