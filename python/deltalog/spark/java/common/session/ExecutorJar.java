package io.deltalog.spark;

import java.io.File;
import java.net.URI;
import java.net.URISyntaxException;
import org.apache.spark.SparkContext;
import scala.collection.Iterator;

/** The jar with these classes, for the executors of a context. */
public class ExecutorJar {
  private ExecutorJar() {}

  /** Adds the jar to a context, unless it has the jar. */
  static void give(SparkContext context) {
    File jar = new File(location());
    Iterator known = context.listJars().iterator();
    while (known.hasNext()) {
      if (((String) known.next()).endsWith("/" + jar.getName())) {
        return;
      }
    }
    context.addJar(jar.getPath());
  }

  private static URI location() {
    try {
      return ExecutorJar.class.getProtectionDomain().getCodeSource().getLocation().toURI();
    } catch (URISyntaxException e) {
      throw new IllegalStateException("the path of the jar of deltalog is not a URI", e);
    }
  }
}
