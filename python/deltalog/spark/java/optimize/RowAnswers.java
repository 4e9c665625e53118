package io.deltalog.spark;

import scala.runtime.AbstractFunction2;
import scala.runtime.BoxedUnit;

/** Takes the answers of the tasks of a RowJob, one after another. */
public class RowAnswers extends AbstractFunction2 {
  private final RowJob job;

  public RowAnswers(RowJob job) {
    this.job = job;
  }

  public Object apply(Object task, Object answer) {
    job.add((byte[]) answer);
    return BoxedUnit.UNIT;
  }
}
