package io.deltalog.spark;

import org.apache.spark.sql.SparkSession;

/**
 * Calls to Python for tables that streams read. Offsets are passed as JSON, and options as the JSON
 * of `TableOptions`.
 *
 * <p>The string that `open` returns identifies a stream. It contains everything that a new Python
 * process needs to open the stream again.
 */
public interface StreamSourceCalls {
  /**
   * Returns the columns that a stream with these options has, as JSON.
   *
   * @param schema the schema that the user expects, as JSON, or null
   */
  String columns(SparkSession session, String options, String schema);

  /**
   * Opens a stream, and returns the string that identifies it.
   *
   * @param schema the columns that the query expects, as JSON
   * @param place the path that Spark gives to the source within the query's checkpoint
   */
  String open(SparkSession session, String options, String schema, String place);

  /**
   * Determines the first version of a stream. Returns a JSON object: `stream` is the string that
   * identifies the stream from now on, and `start` is the string to store in the checkpoint, or
   * null.
   *
   * @param kept the string that was stored in the checkpoint, or null
   */
  String begin(SparkSession session, String stream, String kept);

  /**
   * Returns the end of the next batch, as a JSON object. `offset` is the end: it equals `start` if
   * there are no new rows, and is null if a new stream has no rows yet. `newest` is the end of the
   * newest version that was seen.
   *
   * @param start where the batch begins, or null for the beginning of the stream
   * @param isUnlimited whether the batch has all new rows, regardless of the limits
   * @param endsAtNewest whether the stream ends with the newest version, which is determined by the
   *     first call that passes true
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
