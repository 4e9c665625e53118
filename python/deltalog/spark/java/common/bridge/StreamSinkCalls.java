package io.deltalog.spark;

import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;

/**
 * Calls to Python for tables to which streams write. The parameter `options` is the JSON of
 * `TableOptions`, which includes the path.
 */
public interface StreamSinkCalls {
  /**
   * Throws an exception if a stream that is being started cannot write to the table.
   *
   * @param stream the properties that all batches share, as JSON (`StreamSink`)
   * @param creates whether the table is created next
   */
  void start(SparkSession session, String options, String stream, boolean creates);

  /**
   * Sets the table properties among the options of a stream, if the table was just created. Spark
   * creates the table of a stream without them.
   */
  void define(SparkSession session, String options);

  /**
   * Writes a batch in one commit, unless the table has already recorded the batch.
   *
   * @param batch the properties of the batch, as JSON (`StreamSink`)
   * @param sink the `StreamSink`, which Python asks for the rows to write
   */
  void write(SparkSession session, String options, Dataset<Row> rows, String batch, Object sink);
}
