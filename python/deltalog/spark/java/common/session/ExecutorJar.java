package io.deltalog.spark;

import java.io.File;
import org.apache.spark.JobArtifactSet$;
import org.apache.spark.SparkContext;
import scala.collection.Iterator;
import scala.runtime.AbstractFunction0;
import scala.runtime.BoxedUnit;

/** The jar with these classes, for the executors of a context. */
public class ExecutorJar {
  private ExecutorJar() {}

  /** Adds the jar to a context for all sessions, unless it has the jar. */
  static void give(SparkContext context) {
    File jar = Installation.own();
    Iterator known = context.listJars().iterator();
    while (known.hasNext()) {
      if (((String) known.next()).endsWith("/" + jar.getName())) {
        return;
      }
    }
    // The first session may be a client's. The jar would be its own, and Spark would give it no
    // others.
    JobArtifactSet$.MODULE$.withActiveJobArtifactState(null, new Addition(context, jar));
  }

  /** Adds a jar for all sessions. */
  private static final class Addition extends AbstractFunction0 {
    private final SparkContext context;
    private final File jar;

    Addition(SparkContext context, File jar) {
      this.context = context;
      this.jar = jar;
    }

    @Override
    public Object apply() {
      context.addJar(jar.getPath());
      return BoxedUnit.UNIT;
    }
  }
}
