package io.deltalog.spark;

import org.apache.spark.sql.SparkSession;

/**
 * Calls to Python for tables that streams read. Offsets are passed as JSON, and options as the JSON
 * of `TableOptions`.
 *
 * <p>The text that `open` returns identifies a stream. A new Python process can open the stream
 * again from this text.
 */
public interface StreamSourceCalls {
  /**
   * Returns the columns that a stream with these options has, as JSON.
   *
   * @param schema the schema that the user expects, as JSON, or null
   */
  String columns(SparkSession session, String options, String schema);

  /**
   * Opens a stream, and returns its text.
   *
   * @param schema the columns that the query expects, as JSON
   * @param place the path that Spark gives to the source within the query's checkpoint
   */
  String open(SparkSession session, String options, String schema, String place);

  /**
   * Determines the first version of a stream. Returns a JSON object: `stream` is the new text of
   * the stream, and `start` is the text to store in the checkpoint, or null.
   *
   * @param kept the text that the checkpoint has stored, or null
   */
  String begin(SparkSession session, String stream, String kept);

  /**
   * Returns the end of the next batch, as a JSON object. `offset` is the end: it is `start` if
   * there is nothing new, and null if a new stream has no rows yet. `newest` is the end of the
   * newest version that was seen.
   *
   * @param start where the batch begins, or null for the beginning of the stream
   * @param isUnlimited whether the batch has all new rows, regardless of the limits
   * @param endsAtNewest whether the stream ends with the version that is the newest at the first
   *     call that passes true
   */
  String latest(
      SparkSession session, String stream, String start, boolean isUnlimited, boolean endsAtNewest);

  /**
   * Describes the rows between two offsets, as the JSON of `RelationDescription`. Their files are
   * looked up when the rows are read.
   *
   * @param start where the batch begins, or null for the beginning of the stream
   */
  String batch(SparkSession session, String stream, String start, String end);

  /**
   * Returns the metrics of a query that has read up to `start`, as a JSON object of numbers. Sends
   * no request to the store.
   */
  String outstanding(SparkSession session, String stream, String start);

  /** Tells the stream that the batches up to an offset are finished. */
  void release(SparkSession session, String stream, String end);

  /** Ends a stream. */
  void stop(String stream);
}
