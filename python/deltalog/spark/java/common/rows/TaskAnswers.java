package io.deltalog.spark;

import java.io.IOException;
import java.io.UncheckedIOException;
import scala.runtime.AbstractFunction2;
import scala.runtime.BoxedUnit;

/** Hands the answers of tasks to an AnswerJob, one after another. */
public class TaskAnswers extends AbstractFunction2 {
  private final AnswerJob job;

  public TaskAnswers(AnswerJob job) {
    this.job = job;
  }

  @Override
  public Object apply(Object partition, Object answer) {
    try {
      job.add((byte[]) answer);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
    return BoxedUnit.UNIT;
  }
}
