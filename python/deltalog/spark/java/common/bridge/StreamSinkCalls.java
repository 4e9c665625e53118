package io.deltalog.spark;

import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;

/**
 * Tables that streams write to. The options of a stream are the JSON of TableOptions; the path is
 * one of them.
 */
public interface StreamSinkCalls {
  /**
   * Refuses a stream that cannot write, when it starts.
   *
   * @param stream what all batches share, as JSON (StreamSink)
   * @param isNamed whether the stream names its table, which Spark may just have created
   */
  void start(SparkSession session, String options, String stream, boolean isNamed);

  /**
   * Writes a batch in one commit, unless the table has recorded it.
   *
   * @param batch what is known of the batch, as JSON (StreamSink)
   * @param sink the StreamSink, which Python calls for the rows to write
   */
  void write(SparkSession session, String options, Dataset<Row> rows, String batch, Object sink);
}
