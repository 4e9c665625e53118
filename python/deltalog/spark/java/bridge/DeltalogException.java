package io.deltalog.spark;

/**
 * A failure of the Python side. The token lets Python find the original exception again; the message says it
 * for everybody else.
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
