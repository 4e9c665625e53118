package io.deltalog.spark;

import scala.runtime.AbstractFunction2;
import scala.runtime.BoxedUnit;

/** Takes what each task of a SampleJob has drawn, one after another. */
public class SampleResults extends AbstractFunction2 {
  private final SampleJob job;

  public SampleResults(SampleJob job) {
    this.job = job;
  }

  public Object apply(Object task, Object drawn) {
    job.add((byte[]) drawn);
    return BoxedUnit.UNIT;
  }
}
