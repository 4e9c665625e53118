package io.deltalog.spark;

import java.io.File;
import org.apache.spark.JobArtifactSet$;
import org.apache.spark.SparkContext;

/** Sends the jar with these classes to the executors of a context. */
public class ExecutorJar {
  private ExecutorJar() {}

  /** Adds the jar to a context for all sessions, unless the context already has it. */
  static void give(SparkContext context) {
    File jar = Installation.own();
    for (String name : Plans.each(context.listJars())) {
      if (name.endsWith("/" + jar.getName())) {
        return;
      }
    }
    // The state of the current session is not used, because this session may belong to a client of
    // Spark Connect. The jar would then be added for that session only.
    JobArtifactSet$.MODULE$.withActiveJobArtifactState(
        null,
        () -> {
          context.addJar(jar.getPath());
          return null;
        });
  }
}
