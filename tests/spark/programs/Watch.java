package io.deltalog.spark;

import java.io.BufferedReader;
import java.io.FileInputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import py4j.GatewayServer;

/**
 * Calls a stub of Python that holds back some answers. Prints the outcome of each call, and how
 * often the process was considered silent. The argument is the name of the step; the time-out is in
 * the system properties.
 */
public class Watch {
  private static final String ANSWER = "!yv\n";
  private static final String SHOWN = "%s = %s%n";

  private static final CountDownLatch pinged = new CountDownLatch(1);
  private static final CountDownLatch held = new CountDownLatch(1);
  private static final CountDownLatch paired = new CountDownLatch(2);
  private static final CountDownLatch goesOn = new CountDownLatch(1);
  private static final AtomicInteger silences = new AtomicInteger();

  /** What the stub does with a ping: "answer", "wait" (for ever), or "close" (the connection). */
  private static volatile String ofPings = "answer";

  private static ServerSocket server;
  private static PythonCalls calls;
  private static long milliseconds;

  private Watch() {}

  public static void main(String[] steps) throws Exception {
    server = new ServerSocket(0, 50, InetAddress.getByAddress(new byte[] {127, 0, 0, 1}));
    daemon(Watch::serve);
    int ended = Integer.getInteger("process", (int) ProcessHandle.current().pid());
    calls = new PythonCalls(new GatewayServer(), server.getLocalPort(), "token", "deltalog", ended);
    calls.whenSilent(silences::incrementAndGet);
    milliseconds = new PythonWatch(calls).milliseconds();
    switch (steps[0]) {
      case "descriptors" -> descriptors();
      case "answered" -> answered();
      case "begun" -> begun();
      case "closed" -> closed();
      case "gone" -> gone();
      default -> throw new IllegalArgumentException(steps[0]);
    }
    System.out.printf(SHOWN, "silences", silences.get());
    System.exit(0); // py4j keeps a non-daemon thread, so the program must exit explicitly.
  }

  private static Thread daemon(Action action) {
    Thread thread =
        new Thread(
            () -> {
              try {
                action.run();
              } catch (Exception e) {
                e.printStackTrace();
              }
            });
    thread.setDaemon(true);
    thread.start();
    return thread;
  }

  private interface Action {
    void run() throws Exception;
  }

  private static void serve() throws InterruptedException {
    while (!server.isClosed()) {
      try {
        Socket socket = server.accept();
        daemon(() -> answer(socket));
      } catch (IOException e) {
        Thread.sleep(10); // The port is closed, or no file descriptor is free.
      }
    }
  }

  private static void answer(Socket socket) throws Exception {
    BufferedReader lines = new BufferedReader(new InputStreamReader(socket.getInputStream()));
    List<String> command = new ArrayList<>();
    for (String line = lines.readLine(); line != null; line = lines.readLine()) {
      command.add(line);
      boolean isToken = command.get(0).equals("A") && command.size() == 2;
      if (!isToken && !(line.equals("e") && command.size() > 2)) {
        continue;
      }
      boolean isPing = command.contains("ping");
      if (isPing) {
        pinged.countDown();
      }
      if (isPing && ofPings.equals("close")) {
        socket.close();
        return;
      }
      if (command.contains("spaired")) {
        paired.countDown();
        paired.await();
      }
      if (command.contains("sheld")) {
        held.countDown();
        goesOn.await();
      }
      if (isPing && ofPings.equals("wait")) {
        goesOn.await();
      }
      command.clear();
      socket.getOutputStream().write(ANSWER.getBytes());
    }
    socket.close();
  }

  /**
   * Calls a method in another thread. "held" is answered when the step allows it, "paired" when two
   * such calls have arrived, and "quick" immediately.
   */
  private static Thread call(String name, String method) {
    return daemon(
        () -> {
          long begun = System.nanoTime();
          String outcome;
          try {
            outcome = "answered " + calls.call("role", method, new Object[0]);
          } catch (Throwable e) {
            outcome = e.getMessage();
          }
          boolean isLong = System.nanoTime() - begun >= milliseconds * 1_000_000;
          System.out.printf(SHOWN, name, (isLong ? "late " : "soon ") + outcome);
        });
  }

  /** This JVM has no free file descriptor when the ping begins. */
  private static void descriptors() throws Exception {
    Thread call = call("call", "held");
    pinged.await(); // From now on, all classes are loaded.
    List<FileInputStream> files = new ArrayList<>();
    try {
      while (true) {
        files.add(new FileInputStream("/dev/null"));
      }
    } catch (IOException e) {
      Thread.sleep(milliseconds * 3 / 4); // A ping begins during this pause.
    }
    for (FileInputStream file : files) {
      file.close();
    }
    Thread.sleep(milliseconds);
    goesOn.countDown();
    call.join();
  }

  /** The ping gets no answer, but another call gets one. */
  private static void answered() throws Exception {
    ofPings = "wait";
    Thread call = call("call", "held");
    pinged.await();
    Thread.sleep(milliseconds / 3); // The ping is given up sooner than this after the answer.
    call("other", "quick").join();
    ofPings = "answer";
    Thread.sleep(milliseconds * 3 / 2);
    goesOn.countDown();
    call.join();
  }

  /** A call begins while a ping waits without an answer. The call has its own time-out. */
  private static void begun() throws Exception {
    // Later calls reuse the connections of these calls, because a successful new connection would
    // show that the process is alive.
    for (Thread pair : List.of(call("one", "paired"), call("two", "paired"))) {
      pair.join();
    }
    ofPings = "wait";
    Thread first = call("first", "held");
    pinged.await();
    Thread.sleep(milliseconds / 3);
    Thread second = call("second", "held");
    first.join();
    second.join();
  }

  /** Each ping fails at once, without an answer and before the time-out. */
  private static void closed() throws Exception {
    ofPings = "close";
    call("call", "held").join();
  }

  /** The port is closed, but the connection of the call is still open. */
  private static void gone() throws Exception {
    Thread call = call("call", "held");
    held.await();
    server.close();
    call.join();
  }
}
