package io.deltalog.spark;

import org.apache.spark.SparkContext;

/** Runs jobs with the tag of a write, by which they are cancelled (`write/interrupts.py`). */
final class JobTag {
  private JobTag() {}

  /** Runs some work so that its jobs in this thread have the tag. */
  static void during(SparkContext context, String tag, Runnable work) {
    // If the write has already set the tag on this thread for its other jobs, the tag must not be
    // removed.
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
