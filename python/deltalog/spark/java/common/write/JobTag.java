package io.deltalog.spark;

import org.apache.spark.SparkContext;

/** Runs jobs with the tag of a write, by which they are cancelled (`write/interrupts.py`). */
final class JobTag {
  private JobTag() {}

  /** Runs some work so that its jobs in this thread have the tag. */
  static void during(SparkContext context, String tag, Runnable work) {
    // If the write has set the tag on the thread for its other jobs, the tag must stay.
    boolean isNew = !context.getJobTags().contains(tag);
    if (isNew) {
      context.addJobTag(tag);
    }
    try {
      work.run();
    } finally {
      if (isNew) {
        context.removeJobTag(tag);
      }
    }
  }
}
