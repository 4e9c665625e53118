package io.deltalog.spark;

/**
 * A failure in Python. Its token identifies the original exception, so that Python can raise that
 * one. Others see the message.
 */
public class DeltalogException extends RuntimeException {
  private final String token;

  public DeltalogException(String message, String token) {
    super(message);
    this.token = token;
  }

  public String token() {
    return token;
  }
}
