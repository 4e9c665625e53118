package io.deltalog.spark;

import java.util.Map;

/** Options and properties as Scala's maps, in which Python receives them. */
public class TableOptions {
  public static scala.collection.immutable.Map scala(Map options) {
    return scala.collection.immutable.Map$.MODULE$.from(scala.jdk.javaapi.CollectionConverters.asScala(options));
  }
}
