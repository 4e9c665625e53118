package io.deltalog.spark;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.spark.broadcast.Broadcast;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.expressions.FileSourceConstantMetadataStructField$;
import org.apache.spark.sql.catalyst.expressions.FileSourceGeneratedMetadataStructField$;
import org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.*;
import org.apache.spark.util.SerializableConfiguration;
import scala.Function1;
import scala.Option;
import scala.collection.immutable.Map;
import scala.collection.immutable.Seq;

/**
 * Spark's own Parquet reader, which also knows what the log says about the files: the names of their columns
 * and which rows are deleted.
 *
 * All of this happens below the scan, so Spark's plan is that of plain files: no filter, no extra column, and
 * the names that users know.
 */
public class SnapshotFormat extends ParquetFileFormat {
  private static final String ROW_INDEX = "_tmp_metadata_row_index";
  private final PhysicalNames names;
  private final boolean byId;
  private final boolean leavesOutRows;
  private final StructType readAs;
  private final boolean isChangeFeed;
  private final String rowIds;
  private final String rowCommitVersions;

  /**
   * names is null if files have the names that users know. readAs has the columns that are read in another
   * type than the table's. The last two are the hidden columns of row tracking, or null.
   */
  public SnapshotFormat(PhysicalNames names, boolean byId, boolean leavesOutRows, StructType readAs, boolean isChangeFeed, String rowIds, String rowCommitVersions) {
    this.names = names;
    this.byId = byId;
    this.leavesOutRows = leavesOutRows;
    this.readAs = readAs;
    this.isChangeFeed = isChangeFeed;
    this.rowIds = rowIds;
    this.rowCommitVersions = rowCommitVersions;
  }

  /** Returns whether deleted rows are the only thing to add; a change data feed adds columns to all rows. */
  public boolean leavesOutRows() {
    return leavesOutRows && !isChangeFeed;
  }

  /** Returns the format for files whose rows are all shown; Spark's own class if nothing else is needed. */
  public ParquetFileFormat withAllRows() {
    if (names == null && readAs.isEmpty() && rowIds == null) {
      return new ParquetFileFormat();
    }
    return new SnapshotFormat(names, byId, false, readAs, isChangeFeed, rowIds, rowCommitVersions);
  }

  /** Returns whether Spark's reader delivers the columns as they are needed. */
  private boolean isSparksOwn(StructType required) {
    if (leavesOutRows || isChangeFeed) {
      return false;
    }
    List asked = Arrays.asList(required.fieldNames());
    return Collections.disjoint(asked, Arrays.asList(readAs.fieldNames())) && !asked.contains(rowIds) && !asked.contains(rowCommitVersions);
  }

  /** Returns false for nested widened decimals, which are converted row by row. */
  public boolean supportBatch(SparkSession session, StructType schema) {
    for (int i = 0; i < readAs.length(); i++) {
      StructField column = readAs.fields()[i];
      if (!(column.dataType() instanceof DecimalType) && schema.getFieldIndex(column.name()).isDefined()) {
        return false;
      }
    }
    return super.supportBatch(session, schema);
  }

  /**
   * Returns true. Spark calls this for every file, and Spark 4.3 would look up its settings for archives each
   * time, although data files are not archives.
   */
  public boolean isSplitable(SparkSession session, Map options, Path path) {
    return true;
  }

  /** Returns the classes of vectors that generated code may rely on; only Spark's own reader delivers them. */
  public Option vectorTypes(StructType required, StructType partition, SQLConf conf) {
    return isSparksOwn(required) ? super.vectorTypes(required, partition, conf) : Option.empty();
  }

  /** Returns the fields of _metadata, with those of row tracking under the names of the JVM connector. */
  public Seq metadataSchemaFields() {
    List fields = new ArrayList(scala.jdk.javaapi.CollectionConverters.asJava(super.metadataSchemaFields()));
    if (rowIds != null) {
      DataType type = DataTypes.LongType;
      fields.add(FileSourceGeneratedMetadataStructField$.MODULE$.apply("row_id", rowIds, type, true));
      fields.add(FileSourceConstantMetadataStructField$.MODULE$.apply(FileFacts.BASE_ROW_ID, type, true));
      fields.add(FileSourceConstantMetadataStructField$.MODULE$.apply(FileFacts.DEFAULT_ROW_COMMIT_VERSION, type, true));
      fields.add(FileSourceGeneratedMetadataStructField$.MODULE$.apply("row_commit_version", rowCommitVersions, type, true));
    }
    return scala.jdk.javaapi.CollectionConverters.asScala(fields).toSeq();
  }

  public Function1 buildReaderWithPartitionValues(SparkSession session, StructType data, StructType partition, StructType required, Seq filters, Map options, Configuration conf) {
    if (isSparksOwn(required)) {
      return reader(session, data, partition, required, filters, options, conf);
    }
    StructType read = withTypesRead(required);
    if (!Arrays.asList(read.fieldNames()).contains(ROW_INDEX)) {
      read = read.add(ROW_INDEX, DataTypes.LongType, true);
    }
    ScanColumn[] columns = new ScanColumn[required.length() + partition.length()];
    for (int i = 0; i < columns.length; i++) {
      boolean fromFile = i < required.length();
      StructField field = fromFile ? required.fields()[i] : partition.fields()[i - required.length()];
      columns[i] = fromFile ? column(i, field, read.fields()[i].dataType(), read.fieldIndex(ROW_INDEX)) : new ScanColumn(i - required.length() + read.length(), field.dataType());
    }
    Object configuration = new SerializableConfiguration(conf);
    Broadcast shared = session.sparkContext().broadcast(configuration, scala.reflect.ClassTag$.MODULE$.apply(SerializableConfiguration.class));
    Function1 reader = reader(session, data, partition, read, filters, options, conf);
    return new ScanReader(reader, columns, read.fieldIndex(ROW_INDEX), shared);
  }

  private ScanColumn column(int position, StructField field, DataType read, int rowIndex) {
    if (isChangeFeed && field.name().equals(ChangeType.NAME)) {
      return new ChangeType(position);
    }
    if (field.name().equals(rowIds)) {
      return new RowTracking(position, FileFacts.BASE_ROW_ID, rowIndex);
    }
    if (field.name().equals(rowCommitVersions)) {
      return new RowTracking(position, FileFacts.DEFAULT_ROW_COMMIT_VERSION, -1);
    }
    DataType type = field.dataType();
    if (type.equals(read)) {
      return new ScanColumn(position, type);
    }
    return read instanceof DecimalType ? new NarrowDecimal(position, (DecimalType) read, (DecimalType) type) : new NarrowNested(position, read, type);
  }

  private StructType withTypesRead(StructType required) {
    StructField[] fields = new StructField[required.length()];
    for (int i = 0; i < fields.length; i++) {
      StructField field = required.fields()[i];
      Option at = readAs.getFieldIndex(field.name());
      DataType type = at.isDefined() ? NarrowNested.part(field.dataType(), readAs.fields()[((Integer) at.get()).intValue()].dataType()) : field.dataType();
      fields[i] = new StructField(field.name(), type, field.nullable(), field.metadata());
    }
    return new StructType(fields);
  }

  /** Returns Spark's reader with the names of the files. The configuration belongs to this scan alone. */
  private Function1 reader(SparkSession session, StructType data, StructType partition, StructType required, Seq filters, Map options, Configuration conf) {
    if (names == null) {
      return super.buildReaderWithPartitionValues(session, data, partition, required, filters, options, conf);
    }
    Seq pushed = names.of(filters);
    if (byId) {
      conf.setBoolean("spark.sql.parquet.fieldId.read.enabled", true);
      // Spark prunes row groups by name only. A file may have another column under the name.
      pushed = (Seq) scala.collection.immutable.Nil$.MODULE$;
    }
    return super.buildReaderWithPartitionValues(session, names.of(data), partition, names.of(required), pushed, options, conf);
  }
}
