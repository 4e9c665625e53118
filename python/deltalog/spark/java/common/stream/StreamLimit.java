package io.deltalog.spark;

import org.apache.spark.sql.connector.read.streaming.ReadLimit;

/**
 * Stands for the limits of a batch that the options of a stream set. Python knows and applies them.
 * Spark passes this object back to the source, unless the trigger reads all rows in one batch.
 */
final class StreamLimit implements ReadLimit {}
