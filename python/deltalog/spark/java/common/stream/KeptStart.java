package io.deltalog.spark;

import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.SparkSession;

/**
 * A file in the query's checkpoint that stores the first version of a stream whose options do not
 * name a version number (`streams/kept_start.py`). It is written before Spark records the first
 * batch.
 */
final class KeptStart {
  private static final String NAME = "deltalog-start.json";

  private final org.apache.spark.sql.classic.SparkSession session;
  private final Path file;

  /**
   * @param place the path that Spark gives to the source within the query's checkpoint
   */
  KeptStart(SparkSession session, String place) {
    this.session = (org.apache.spark.sql.classic.SparkSession) session;
    this.file = new Path(place, NAME);
  }

  /** Returns the stored start, or null. */
  String read() {
    try (FSDataInputStream in = files().open(file)) {
      return new String(in.readAllBytes(), StandardCharsets.UTF_8);
    } catch (FileNotFoundException e) {
      return null;
    } catch (IOException e) {
      throw new UncheckedIOException("the start of the stream cannot be read: " + file, e);
    }
  }

  /** Stores the start. The file appears under its name only when it is complete. */
  void write(String text) {
    Path written = new Path(file.getParent(), "." + NAME + ".tmp");
    try {
      FileSystem files = files();
      try (FSDataOutputStream out = files.create(written, true)) {
        out.write(text.getBytes(StandardCharsets.UTF_8));
      }
      // A file that already exists is for options that have changed since. It is deleted here,
      // because renaming does not replace it.
      files.delete(file, false);
      if (!files.rename(written, file)) {
        throw new IOException("the temporary file cannot be renamed");
      }
    } catch (IOException e) {
      throw new UncheckedIOException("the start of the stream cannot be kept: " + file, e);
    }
  }

  private FileSystem files() throws IOException {
    return file.getFileSystem(session.sessionState().newHadoopConf());
  }
}
