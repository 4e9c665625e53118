package io.deltalog.spark;

import scala.runtime.AbstractFunction0;

/** A job whose rows are balanced, to be executed with the settings that they need. */
class BalancedJob extends AbstractFunction0 {
  private final FileJob job;

  BalancedJob(FileJob job) {
    this.job = job;
  }

  @Override
  public Object apply() {
    job.execute();
    return null;
  }
}
