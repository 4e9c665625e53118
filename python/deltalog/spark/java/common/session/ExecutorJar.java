package io.deltalog.spark;

import java.io.File;
import org.apache.spark.JobArtifactSet$;
import org.apache.spark.SparkContext;

/** The jar with these classes, for the executors of a context. */
public class ExecutorJar {
  private ExecutorJar() {}

  /** Adds the jar to a context for all sessions, unless it has the jar. */
  static void give(SparkContext context) {
    File jar = Installation.own();
    for (String name : Plans.each(context.listJars())) {
      if (name.endsWith("/" + jar.getName())) {
        return;
      }
    }
    // The first session may be a client's. The jar would be its own, and Spark would give it no
    // others.
    JobArtifactSet$.MODULE$.withActiveJobArtifactState(
        null,
        () -> {
          context.addJar(jar.getPath());
          return null;
        });
  }
}
