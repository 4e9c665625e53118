package io.deltalog.spark;

import java.io.IOException;
import scala.runtime.AbstractFunction2;
import scala.runtime.BoxedUnit;

/** Adds the results of tasks to a KeySummary. */
public class KeyResults extends AbstractFunction2 {
  private final KeySummary summary;

  public KeyResults(KeySummary summary) {
    this.summary = summary;
  }

  /** Spark calls it for one task at a time. */
  public Object apply(Object partition, Object bytes) {
    try {
      summary.add(KeySummary.of((byte[]) bytes));
    } catch (IOException e) {
      throw new IllegalStateException(e);
    } catch (ClassNotFoundException e) {
      throw new IllegalStateException(e);
    }
    return BoxedUnit.UNIT;
  }
}
