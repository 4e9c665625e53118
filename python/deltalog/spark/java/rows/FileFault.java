package io.deltalog.spark;

import org.apache.hadoop.fs.Path;

/**
 * What a task finds wrong with a file of the table. Python knows the table that the data file belongs to, and
 * makes its own exception of it.
 */
public class FileFault extends RuntimeException {
  /** Names of Python's classes. */
  public static final String CORRUPT = "CorruptDataError";
  public static final String MISSING = "MissingFileError";
  public static final String UNSUPPORTED = "UnsupportedFeatureError";
  public static final String UNAVAILABLE = "UnavailableError";
  private final String kind;
  private final String hint;
  private final String dataFile;

  public FileFault(String kind, String message, String hint, Path dataFile, Exception cause) {
    super(message, cause);
    this.kind = kind;
    this.hint = hint;
    this.dataFile = dataFile.toString();
  }

  public String kind() {
    return kind;
  }

  public String hint() {
    return hint;
  }

  public String dataFile() {
    return dataFile;
  }
}
