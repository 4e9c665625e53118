package io.deltalog.spark;

import org.apache.spark.sql.SparkSession;

/**
 * Tables as sources of streams. Offsets are their JSON, the options the JSON of TableOptions.
 *
 * <p>A stream is named by the text that open returns. Python can make it again from the text, so
 * that nothing of a stream is lost with a Python process.
 */
public interface StreamSourceCalls {
  /**
   * Returns the columns of the rows of a stream, as JSON.
   *
   * @param schema the schema that the user expects, as JSON, or null
   */
  String columns(SparkSession session, String options, String schema);

  /**
   * Opens a stream, and returns its text.
   *
   * @param schema the columns of the query that the stream is for, as JSON
   * @param place where the checkpoint of the query has the source
   */
  String open(SparkSession session, String options, String schema, String place);

  /**
   * Fixes where a stream begins. Returns a JSON object: `stream` is its new text, `start` what to
   * keep of its start until its first batch is done, or null.
   *
   * @param kept what was kept of its start, or null
   */
  String begin(SparkSession session, String stream, String kept);

  /**
   * Returns how far a batch may go, as a JSON object: `offset` is where it ends, start itself if
   * there is nothing new, or null if there is nothing at all yet; `newest` is the end of the newest
   * version that was seen.
   *
   * @param start where the batch begins, or null for the beginning of the stream
   * @param isUnlimited whether the batch has all that there is
   * @param endsAtNewest whether the stream ends at the version that is the newest at the first such
   *     call
   */
  String latest(
      SparkSession session, String stream, String start, boolean isUnlimited, boolean endsAtNewest);

  /**
   * Returns the rows between two offsets, as the JSON of RelationDescription. Their files are found
   * when they are read.
   *
   * @param start where the batch begins, or null for the beginning of the stream
   */
  String batch(SparkSession session, String stream, String start, String end);

  /**
   * Returns how much comes after an offset, as far as that is known without a request, as a JSON
   * object of numbers.
   */
  String outstanding(SparkSession session, String stream, String start);

  /** Says that the batches up to an offset are done. */
  void release(SparkSession session, String stream, String end);

  /** Ends a stream. */
  void stop(String stream);
}
