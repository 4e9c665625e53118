package io.deltalog.spark;

import org.apache.hadoop.fs.Path;

/**
 * A fault that a task detects in a file of the table. Python knows which table the file belongs to,
 * and converts the fault to its own exception.
 */
public class FileFault extends RuntimeException {
  /** The names of exception classes in Python. */
  public static final String CORRUPT = "CorruptDataError";

  public static final String MISSING = "MissingFileError";
  public static final String UNSUPPORTED = "UnsupportedFeatureError";
  public static final String UNAVAILABLE = "UnavailableError";

  /**
   * Advice for the user about a missing file; the same text as in Rust (`MISSING_FILE_HINT`) and in
   * Python.
   */
  static final String MISSING_HINT =
      "the log refers to this file, but it was vacuumed (if this is an old version) or deleted by"
          + " hand: read a newer version, or restore the file";

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
