package io.deltalog.spark;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.net.SocketTimeoutException;
import java.util.concurrent.LinkedBlockingDeque;
import py4j.ClientServerConnection;
import py4j.Gateway;
import py4j.GatewayServer;
import py4j.Protocol;
import py4j.Py4JNetworkException;

/**
 * A client for one object of the Python process, with separate connections.
 *
 * <ul>
 *   <li>A connection serves one call at a time. The next call reuses it, even from another thread.
 *       (py4j's own proxies keep a socket and a Python thread for every JVM thread that ever made a
 *       call.)
 *   <li>Calls wait only for Python's answer, so they may be nested, and several threads may make
 *       calls at once.
 *   <li>If the called Python code calls the JVM, that call runs in the calling thread, with its job
 *       tags and its active session.
 *   <li>A call may take as long as Python works, but a call to a process that no longer answers is
 *       ended (PythonWatch).
 *   <li>Every connection starts with a token. Python rejects connections without it.
 * </ul>
 */
public class PythonCalls {
  private static final int MOST_IDLE = 4;

  /** The SQLSTATE of a transaction whose outcome is unknown. */
  private static final String UNKNOWN_COMMIT = "08007";

  static final String ENDED =
      "Python has ended before it answered, so the statement may or may not have been committed:"
          + " see DESCRIBE HISTORY";

  private final GatewayServer server;
  private final int port;
  private final String token;
  private final String target;
  private final int process;
  private final LinkedBlockingDeque<ClientServerConnection> idle =
      new LinkedBlockingDeque<>(MOST_IDLE);
  private final PythonWatch watch = new PythonWatch(this);
  private volatile Runnable whenSilent = () -> {};

  /**
   * Creates a client for the object with the id target in a Python process, which listens at the
   * given port of 127.0.0.1.
   */
  public PythonCalls(GatewayServer server, int port, String token, String target, int process) {
    this.server = server;
    this.port = port;
    this.token = token;
    this.target = target;
    this.process = process;
  }

  int process() {
    return process;
  }

  /** Sets the action to run when the process no longer answers. */
  void whenSilent(Runnable action) {
    whenSilent = action;
  }

  /** Runs the action for a process that no longer answers. */
  void reportSilence() {
    whenSilent.run();
  }

  /**
   * Returns whether the process still listens at its port. It may nevertheless be too busy to
   * answer.
   */
  boolean isListening() {
    try (Socket socket = new Socket(InetAddress.getByAddress(new byte[] {127, 0, 0, 1}), port)) {
      return socket.isConnected();
    } catch (IOException e) {
      return false;
    }
  }

  /** Returns whether the process has ended. */
  boolean isEnded() {
    return ProcessHandle.of(process).filter(ProcessHandle::isAlive).isEmpty();
  }

  /** Calls Python's `call(role, method, *arguments)` and returns its result. */
  public Object call(String role, String method, Object[] arguments) throws Throwable {
    ClientServerConnection connection = idle.pollFirst();
    if (connection == null) {
      connection = connect();
    }
    boolean isUsable = false;
    watch.begin(connection);
    try {
      String answer = connection.sendCommand(command(role, method, arguments));
      isUsable = true;
      return Protocol.getReturnValue(answer, gateway());
    } catch (Py4JNetworkException e) {
      String reason = watch.reasonOfGivingUp(connection);
      // The exception is not used as the cause, because its message has the whole command, with the
      // user's options and perhaps secrets.
      throw reason == null ? unknown(ENDED, e.getCause()) : unknown(reason, null);
    } finally {
      boolean isClosed = watch.end(connection, isUsable);
      if (!isUsable || isClosed || !idle.offerFirst(connection)) {
        connection.shutdown();
      }
    }
  }

  private static DeltalogException unknown(String message, Throwable cause) {
    return new DeltalogException(message, null, UNKNOWN_COMMIT, cause);
  }

  private Gateway gateway() {
    return server.getGateway();
  }

  private String command(String role, String method, Object[] arguments) {
    StringBuilder command = new StringBuilder("c\n").append(target).append("\ncall\n");
    append(command, role);
    append(command, method);
    for (Object argument : arguments) {
      append(command, argument);
    }
    return command.append("e\n").toString();
  }

  private void append(StringBuilder command, Object argument) {
    command.append(gateway().getReturnObject(argument).getCommandPart()).append('\n');
  }

  /** Makes a call that does nothing, with a time limit in milliseconds for each answer. */
  void ping(int milliseconds) throws IOException {
    ClientServerConnection connection = connect(milliseconds);
    try {
      connection.sendCommand("c\n" + target + "\nping\ne\n");
    } finally {
      connection.shutdown();
    }
  }

  /** Connects, with a time limit in milliseconds for each answer; 0 for no limit. */
  private ClientServerConnection connect(int milliseconds) throws IOException {
    Socket socket = new Socket();
    boolean isConnected = false;
    try {
      socket.setSoTimeout(milliseconds);
      InetAddress loopback = InetAddress.getByAddress(new byte[] {127, 0, 0, 1});
      socket.connect(new InetSocketAddress(loopback, port), milliseconds);
      // The argument for a Python client is null, because only connections that Python opens have
      // one, and Python opens no such connections without pinned threads.
      ClientServerConnection connection =
          new ClientServerConnection(
              gateway(), socket, server.getCustomCommands(), null, server, 0, token);
      connection.setInitiatedFromClient(true);
      connection.start();
      isConnected = true;
      return connection;
    } finally {
      if (!isConnected) {
        socket.close();
      }
    }
  }

  private ClientServerConnection connect() {
    try {
      // Connecting needs a time limit, because it waits until the process has confirmed the token.
      ClientServerConnection connection = connect(watch.milliseconds());
      connection.getSocket().setSoTimeout(0);
      watch.answered();
      return connection;
    } catch (SocketTimeoutException e) {
      if (watch.isSilent()) {
        reportSilence();
      }
      throw unknown(watch.reason(null), null);
    } catch (IOException e) {
      throw new UncheckedIOException(
          "deltalog cannot call the Python process that enabled it: " + e.getMessage(), e);
    }
  }
}
