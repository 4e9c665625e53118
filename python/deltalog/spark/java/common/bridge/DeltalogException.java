package io.deltalog.spark;

import org.apache.spark.SparkThrowable;

/**
 * A failure in Python.
 *
 * <p>A Python program stores its exception under the token, and raises it when the failure arrives
 * in Python again. Other callers see the message and the SQLSTATE. A sidecar does not store
 * exceptions, so its failures have no token.
 */
public class DeltalogException extends RuntimeException implements SparkThrowable {
  private final String token;
  private final String sqlState;

  /**
   * Creates a failure.
   *
   * @param message what has failed; null if Python passes on a failure of Spark unchanged
   * @param token the token of Python's exception, or null
   * @param sqlState the SQLSTATE, or null
   * @param cause the failure of Spark that made Python fail, or null
   */
  public DeltalogException(String message, String token, String sqlState, Throwable cause) {
    super(message, cause);
    this.token = token;
    this.sqlState = sqlState;
  }

  public String token() {
    return token;
  }

  /** Returns the failure of Spark if Python passes it on unchanged; otherwise null. */
  Throwable ofSpark() {
    return super.getMessage() == null ? getCause() : null;
  }

  @Override
  public String getMessage() {
    return ofSpark() == null ? super.getMessage() : ofSpark().getMessage();
  }

  /**
   * Returns the condition of a failure that Python passes on from Spark. Otherwise returns null,
   * because failures of deltalog are not among Spark's error conditions.
   */
  @Override
  public String getCondition() {
    return ofSpark() instanceof SparkThrowable spark ? spark.getCondition() : null;
  }

  @Override
  public String getSqlState() {
    return ofSpark() instanceof SparkThrowable spark ? spark.getSqlState() : sqlState;
  }
}
