package io.deltalog.spark;

import java.io.Serializable;

/**
 * The bytes that the values of an expression of a table may have for a row, all of them together.
 *
 * <p>A thread evaluates one expression at a time. Its outermost value starts the count again.
 */
public class RuleAllowance implements Serializable {
  private static final long serialVersionUID = 1L;

  /** The depth of values, the bytes that were made, and 1 if they were too many. */
  private static final ThreadLocal<long[]> COUNTS = ThreadLocal.withInitial(() -> new long[3]);

  private final long most;
  private final String refusal;

  /** Takes the limit, and the text of the error. */
  public RuleAllowance(long most, RuleRefusal refusal) {
    this.most = most;
    this.refusal = refusal.sql();
  }

  /** Begins a value. */
  public void enter() {
    long[] counts = COUNTS.get();
    if (counts[0]++ == 0) {
      counts[1] = 0;
      counts[2] = 0;
    }
  }

  /** Ends a value. */
  public void leave() {
    COUNTS.get()[0]--;
  }

  /** Returns how many bytes are left. */
  public long left() {
    return most - COUNTS.get()[1];
  }

  /** Refuses a value that may be too large. Functions such as `try_url_decode` hide the error. */
  public void ensure(double bytes) {
    long[] counts = COUNTS.get();
    if (counts[2] == 1 || counts[1] + bytes > most) {
      counts[2] = 1;
      throw new RuntimeException(refusal);
    }
  }

  /** Counts a value. */
  public void take(long bytes) {
    ensure((double) bytes);
    COUNTS.get()[1] += bytes;
  }
}
