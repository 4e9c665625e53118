package io.deltalog.spark;

import org.apache.spark.SparkThrowable;

/**
 * A failure in Python.
 *
 * <p>A Python program keeps its exception under the token, and raises it when the failure returns
 * to it. Other callers see message and SQLSTATE. A sidecar keeps nothing and has no token.
 */
public class DeltalogException extends RuntimeException implements SparkThrowable {
  private final String token;
  private final String sqlState;

  /**
   * Creates a failure.
   *
   * @param message what has failed; null if Python has met a failure of Spark and has nothing to
   *     add to it
   * @param token the token of Python's exception, or null
   * @param sqlState the SQLSTATE, or null
   * @param cause the failure of Spark that Python has met, or null
   */
  public DeltalogException(String message, String token, String sqlState, Throwable cause) {
    super(message, cause);
    this.token = token;
    this.sqlState = sqlState;
  }

  public String token() {
    return token;
  }

  /** Returns the failure of Spark if Python has nothing to add to it, or null. */
  Throwable ofSpark() {
    return super.getMessage() == null ? getCause() : null;
  }

  @Override
  public String getMessage() {
    return ofSpark() == null ? super.getMessage() : ofSpark().getMessage();
  }

  /** Returns null for failures of deltalog, which are not among Spark's conditions. */
  @Override
  public String getCondition() {
    return ofSpark() instanceof SparkThrowable spark ? spark.getCondition() : null;
  }

  @Override
  public String getSqlState() {
    return ofSpark() instanceof SparkThrowable spark ? spark.getSqlState() : sqlState;
  }
}
