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
   * @param creates whether its table is created then
   */
  void start(SparkSession session, String options, String stream, boolean creates);

  /**
   * Completes the definition of a table that has nothing but its definition, because Spark creates
   * the table of a stream without the options of the stream.
   */
  void define(SparkSession session, String options);

  /**
   * Writes a batch in one commit, unless the table has recorded it.
   *
   * @param batch what is known of the batch, as JSON (StreamSink)
   * @param sink the StreamSink, which Python calls for the rows to write
   */
  void write(SparkSession session, String options, Dataset<Row> rows, String batch, Object sink);
}
