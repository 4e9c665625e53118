package io.deltalog.spark;

import java.io.IOException;
import java.net.URI;
import java.net.URISyntaxException;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.SparkSession;

/** Paths of Hadoop, which are not escaped, and URLs. */
public class Locations {
  private Locations() {}

  /**
   * Returns the URL of a path. A relative path is resolved against the file system's working directory.
   *
   * Throws an IllegalArgumentException if the text is not a path, and an IllegalStateException if Hadoop has no file
   * system for it.
   */
  public static String url(SparkSession session, String text) {
    Path path = new Path(text);
    FileSystem files;
    try {
      files = path.getFileSystem(
          ((org.apache.spark.sql.classic.SparkSession) session).sessionState().newHadoopConf());
    } catch (IOException e) {
      throw new IllegalStateException(e.getMessage(), e);
    } catch (IllegalArgumentException e) {
      throw new IllegalStateException(e.getMessage(), e);
    }
    return files.makeQualified(path).toUri().toString();
  }

  /** Returns the path of a URL. */
  public static String path(String url) {
    try {
      return new Path(new URI(url)).toString();
    } catch (URISyntaxException e) {
      throw new IllegalArgumentException(e);
    }
  }
}
