package io.deltalog.spark;

/**
 * Refuses to run in a Thrift server whose only deltalog jar comes from `--jars`. When one of the
 * server's sessions ends, Hive closes the class loader of these jars, and all other sessions can no
 * longer load classes that were not used before.
 */
final class ThriftServerJar {
  private static final String SERVER = "org.apache.spark.sql.hive.thriftserver.HiveThriftServer2";

  private ThriftServerJar() {}

  static void check() {
    check(System.getProperty("sun.java.command", ""), ThriftServerJar.class.getClassLoader());
  }

  /** Takes the command of the JVM, and the class loader of deltalog's classes. */
  static void check(String command, ClassLoader loader) {
    if (command.contains(SERVER) && loader != ClassLoader.getSystemClassLoader()) {
      throw new IllegalStateException(
          "deltalog's jar must be on the class path of a Thrift server: name it in"
              + " spark.driver.extraClassPath (--driver-class-path) and not in spark.jars (--jars),"
              + " whose class loader Hive closes when a session ends");
    }
  }
}
