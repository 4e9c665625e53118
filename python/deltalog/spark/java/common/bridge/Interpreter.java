package io.deltalog.spark;

import java.util.Map;
import org.apache.spark.SparkConf;

/**
 * The Python interpreters of a sidecar: the command of the sidecar itself, and the command of
 * workers that run its functions.
 */
record Interpreter(String command, String ofWorkers) {
  static final String SETTING = "spark.deltalog.python";
  private static final String[] SETTINGS = {
    SETTING, "spark.pyspark.driver.python", "spark.pyspark.python"
  };
  private static final String WORKERS = "PYSPARK_PYTHON";
  private static final String[] VARIABLES = {"PYSPARK_DRIVER_PYTHON", WORKERS};
  private static final String DEFAULT = "python3";

  /**
   * Returns the interpreters that an application configures by settings or environment variables,
   * as PySpark reads them.
   */
  static Interpreter of(SparkConf settings, Map<String, String> environment) {
    String command = command(settings, environment);
    String ofWorkers =
        settings.get("spark.pyspark.python", environment.getOrDefault(WORKERS, command));
    return new Interpreter(command, ofWorkers);
  }

  private static String command(SparkConf settings, Map<String, String> environment) {
    for (String setting : SETTINGS) {
      if (settings.contains(setting)) {
        return settings.get(setting);
      }
    }
    for (String variable : VARIABLES) {
      if (environment.containsKey(variable)) {
        return environment.get(variable);
      }
    }
    return DEFAULT;
  }
}
