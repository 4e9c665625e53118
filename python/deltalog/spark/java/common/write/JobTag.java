package io.deltalog.spark;

import org.apache.spark.SparkContext;

/** The tag of a write, by which its jobs are cancelled (`write/interrupts.py`). */
final class JobTag {
  private JobTag() {}

  /** Runs something whose jobs in this thread have the tag. */
  static void during(SparkContext context, String tag, Runnable work) {
    // If other jobs of the write have the tag as well, the write has set it on the thread.
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
