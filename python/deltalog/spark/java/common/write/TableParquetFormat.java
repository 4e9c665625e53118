package io.deltalog.spark;

import java.util.Arrays;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.mapreduce.Job;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.execution.datasources.OutputWriterFactory;
import org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat;
import org.apache.spark.sql.types.StructType;
import scala.collection.immutable.Map;

/**
 * Spark's Parquet writer with the settings that a Delta table requires, regardless of the session's
 * settings: timestamps as 64-bit microseconds (INT96 has no statistics), decimals in the standard
 * form, variants unshredded, and field ids where the schema has them, also for parts of arrays and
 * maps. What is written is reported to the commit protocol.
 */
public class TableParquetFormat extends ParquetFileFormat {
  private final TableCommitProtocol protocol;
  private final MarkedRows marked;

  /** Creates the format for rows with these markers. */
  public TableParquetFormat(TableCommitProtocol protocol, MarkedRows marked) {
    this.protocol = protocol;
    this.marked = marked;
  }

  @Override
  public OutputWriterFactory prepareWrite(
      SparkSession session, Job job, Map<String, String> options, StructType schema) {
    int width = schema.length() - marked.markers();
    StructType columns = new StructType(Arrays.copyOf(schema.fields(), width));
    OutputWriterFactory factory =
        super.prepareWrite(unshredding(session, columns), job, options, columns);
    Configuration configuration = job.getConfiguration();
    configuration.set("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS");
    configuration.set("spark.sql.parquet.writeLegacyFormat", "false");
    configuration.set("spark.sql.parquet.fieldId.write.enabled", "true");
    // Spark 4.0 cannot read variants that are annotated in the file. The table's schema states
    // which columns are variants.
    configuration.set("spark.sql.parquet.variant.annotateLogicalType.enabled", "false");
    if (schema.json().contains(PartIdsWriteSupport.KEY)) {
      configuration.set("parquet.write.support.class", PartIdsWriteSupport.class.getName());
    }
    return new TableFileWriters(factory, protocol, columns, marked.records(), marked.tracking());
  }

  /**
   * Returns a session that writes variants whole. Only a session's settings control whether they
   * are shredded.
   */
  private static SparkSession unshredding(SparkSession session, StructType schema) {
    // If a table's column has that name, the only effect is an unnecessary copy.
    if (!schema.json().contains("\"variant\"")) {
      return session;
    }
    SparkSession copy = ((org.apache.spark.sql.classic.SparkSession) session).cloneSession();
    copy.conf().set("spark.sql.variant.writeShredding.enabled", "false");
    return copy;
  }
}
