package io.deltalog.spark;

import java.io.Serializable;

/**
 * Limits the total size of the values that an expression of a table computes for one row.
 *
 * <p>A thread evaluates one expression at a time. The count starts again with each outermost value.
 */
public class RuleAllowance implements Serializable {
  private static final long serialVersionUID = 1L;

  /**
   * For each thread: the depth of nested values, the bytes counted so far, and 1 if they exceeded
   * the limit.
   */
  private static final ThreadLocal<long[]> COUNTS = ThreadLocal.withInitial(() -> new long[3]);

  private final long most;
  private final String refusal;

  /** Takes the limit and the error that is raised when it is exceeded. */
  public RuleAllowance(long most, RuleRefusal refusal) {
    this.most = most;
    this.refusal = refusal.sql();
  }

  /** Marks the beginning of the computation of a value. */
  public void enter() {
    long[] counts = COUNTS.get();
    if (counts[0]++ == 0) {
      counts[1] = 0;
      counts[2] = 0;
    }
  }

  /** Marks the end of the computation of a value. */
  public void leave() {
    COUNTS.get()[0]--;
  }

  /** Returns how many bytes are left. */
  public long left() {
    return most - COUNTS.get()[1];
  }

  /**
   * Refuses a value that may exceed the limit. The refusal is remembered, because functions such as
   * `try_url_decode` hide the error.
   */
  public void ensure(double bytes) {
    long[] counts = COUNTS.get();
    if (counts[2] == 1 || counts[1] + bytes > most) {
      counts[2] = 1;
      throw new RuntimeException(refusal);
    }
  }

  /** Adds the bytes of a value to the count. */
  public void take(long bytes) {
    ensure((double) bytes);
    COUNTS.get()[1] += bytes;
  }
}
