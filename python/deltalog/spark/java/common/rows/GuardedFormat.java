package io.deltalog.spark;

import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.execution.datasources.PartitionedFile;
import org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat;
import org.apache.spark.sql.sources.Filter;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.NullType;
import org.apache.spark.sql.types.StructType;
import scala.Function1;
import scala.collection.Iterator;
import scala.collection.immutable.Map;
import scala.collection.immutable.Seq;

/**
 * Spark's Parquet format for files that may come from an untrusted writer: they are opened by
 * GuardedReader.
 */
public class GuardedFormat extends ParquetFileFormat {
  private final String root;
  private final StructType columns;

  /** Creates the format of the files of the table with the root, a Hadoop path, and the columns. */
  public GuardedFormat(String root, StructType columns) {
    this.root = root;
    this.columns = columns;
  }

  protected final String root() {
    return root;
  }

  protected final StructType columns() {
    return columns;
  }

  /**
   * Returns all columns of the table as they are read from files. Spark passes only the parts that
   * a scan needs.
   */
  protected StructType inFiles() {
    return columns;
  }

  /**
   * Returns true. If the answer depended on the file, Spark 4.3 would look up settings for archives
   * for every file.
   */
  @Override
  public boolean isSplitable(SparkSession session, Map<String, String> options, Path path) {
    return true;
  }

  /** Returns whether columns of a type can be read; void columns can. */
  @Override
  public boolean supportDataType(DataType type) {
    return type instanceof NullType || super.supportDataType(type);
  }

  /** Returns whether Spark reads batches of columns. Void columns do not prevent it. */
  @Override
  public boolean supportBatch(SparkSession session, StructType schema) {
    return super.supportBatch(session, VoidColumns.read(schema));
  }

  @Override
  public Function1<PartitionedFile, Iterator<InternalRow>> buildReaderWithPartitionValues(
      SparkSession session,
      StructType data,
      StructType partition,
      StructType required,
      Seq<Filter> filters,
      Map<String, String> options,
      Configuration conf) {
    StructType read = VoidColumns.read(required);
    StructNulls.configure(conf);
    Function1<PartitionedFile, Iterator<?>> reader =
        Unchecked.cast(
            super.buildReaderWithPartitionValues(
                session,
                VoidColumns.read(data),
                partition,
                read,
                VoidColumns.without(filters, inFiles()),
                options,
                conf));
    return Unchecked.cast(StructNulls.guarded(reader, root, read, partition, conf));
  }
}
