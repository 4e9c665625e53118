package io.deltalog.spark;

import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.spark.broadcast.Broadcast;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.FileSourceConstantMetadataStructField$;
import org.apache.spark.sql.catalyst.expressions.FileSourceGeneratedMetadataStructField$;
import org.apache.spark.sql.execution.datasources.FileFormat$;
import org.apache.spark.sql.execution.datasources.PartitionedFile;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.sources.Filter;
import org.apache.spark.sql.types.*;
import org.apache.spark.util.SerializableConfiguration;
import scala.Function1;
import scala.Option;
import scala.collection.Iterator;
import scala.collection.immutable.Map;
import scala.collection.immutable.Seq;

/**
 * Spark's Parquet format, extended with information from the log: the names of the columns in
 * files, and the deleted rows.
 *
 * <p>This is applied below the scan, so Spark's plan is a plan over plain files: without additional
 * filters or columns, and with the column names of queries.
 */
public class SnapshotFormat extends GuardedFormat {
  static final String ROW_INDEX = "_tmp_metadata_row_index";
  private final PhysicalNames names;
  private final boolean byId;
  private final boolean omitsRows;
  private final StructType readAs;
  private final boolean isChangeFeed;
  private final String rowIds;
  private final String rowCommitVersions;
  private final boolean numbersFiles;

  /** The condition that selects the rows of the scan, or null. Its columns are read first. */
  private Expression selection;

  /**
   * Creates the format. names is null if the column names in files are the same as in queries.
   * readAs has the columns whose type in files differs from the table's. rowIds and
   * rowCommitVersions are hidden columns of row tracking, or null. numbersFiles states whether
   * _metadata has the number of the file, for statements that change rows. root is the root of the
   * table, a Hadoop path; columns are the table's columns.
   */
  public SnapshotFormat(
      PhysicalNames names,
      boolean byId,
      boolean omitsRows,
      StructType readAs,
      boolean isChangeFeed,
      String rowIds,
      String rowCommitVersions,
      boolean numbersFiles,
      String root,
      StructType columns) {
    super(root, columns);
    this.names = names;
    this.byId = byId;
    this.omitsRows = omitsRows;
    this.readAs = readAs;
    this.isChangeFeed = isChangeFeed;
    this.rowIds = rowIds;
    this.rowCommitVersions = rowCommitVersions;
    this.numbersFiles = numbersFiles;
  }

  /**
   * Returns the names, in files, of the columns for row ids and row commit versions; empty if the
   * table does not track rows.
   */
  public String[] rowTracking() {
    return rowIds == null ? new String[0] : new String[] {rowIds, rowCommitVersions};
  }

  /**
   * Returns whether this format only leaves out rows. A change data feed, in contrast, also adds
   * columns.
   */
  public boolean onlyOmitsRows() {
    return omitsRows && !isChangeFeed;
  }

  /**
   * Returns the format for files without deleted rows: Spark's own format, with checks, if nothing
   * else is needed.
   */
  public GuardedFormat withAllRows() {
    if (names == null && readAs.isEmpty() && rowIds == null && !numbersFiles) {
      return new GuardedFormat(root(), columns());
    }
    return copy(false);
  }

  private SnapshotFormat copy(boolean omits) {
    return new SnapshotFormat(
        names,
        byId,
        omits,
        readAs,
        isChangeFeed,
        rowIds,
        rowCommitVersions,
        numbersFiles,
        root(),
        columns());
  }

  /**
   * Returns the format for a scan with these filters. For statements that change rows, it reads the
   * columns of the filters first (SelectingReader).
   */
  public SnapshotFormat selecting(Seq<Expression> filters) {
    Expression all = numbersFiles ? SelectingReader.condition(filters, readAs) : null;
    if (all == null) {
      return this;
    }
    SnapshotFormat format = copy(omitsRows);
    format.selection = all;
    return format;
  }

  /** Returns whether Spark's reader returns the required columns unchanged. */
  private boolean isSparksOwn(StructType required) {
    if (omitsRows || isChangeFeed) {
      return false;
    }
    List<String> columns = Arrays.asList(required.fieldNames());
    return Collections.disjoint(columns, Arrays.asList(readAs.fieldNames()))
        && !columns.contains(rowIds)
        && !columns.contains(rowCommitVersions);
  }

  /**
   * Returns false for decimals that were widened inside structs, arrays or maps, because they are
   * converted row by row.
   */
  @Override
  public boolean supportBatch(SparkSession session, StructType schema) {
    for (int i = 0; i < readAs.length(); i++) {
      StructField column = readAs.fields()[i];
      if (!(column.dataType() instanceof DecimalType)
          && schema.getFieldIndex(column.name()).isDefined()) {
        return false;
      }
    }
    return super.supportBatch(session, schema);
  }

  /**
   * Returns the vector classes on which generated code may rely; only Spark's own reader returns
   * them.
   */
  @Override
  public Option<Seq<String>> vectorTypes(StructType required, StructType partition, SQLConf conf) {
    return isSparksOwn(required) ? super.vectorTypes(required, partition, conf) : Option.empty();
  }

  /**
   * Returns the fields of _metadata. The fields of row tracking have the same names as in the JVM
   * connector.
   */
  @Override
  public Seq<StructField> metadataSchemaFields() {
    List<StructField> fields = Plans.list(super.metadataSchemaFields());
    if (rowIds != null) {
      DataType type = DataTypes.LongType;
      fields.add(
          FileSourceGeneratedMetadataStructField$.MODULE$.apply("row_id", rowIds, type, true));
      fields.add(
          FileSourceConstantMetadataStructField$.MODULE$.apply(FileFacts.BASE_ROW_ID, type, true));
      fields.add(
          FileSourceConstantMetadataStructField$.MODULE$.apply(
              FileFacts.DEFAULT_ROW_COMMIT_VERSION, type, true));
      fields.add(
          FileSourceGeneratedMetadataStructField$.MODULE$.apply(
              "row_commit_version", rowCommitVersions, type, true));
    }
    if (numbersFiles) {
      fields.add(
          FileSourceConstantMetadataStructField$.MODULE$.apply(
              FileFacts.NUMBER, DataTypes.IntegerType, false));
    }
    return Plans.seq(fields);
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
    if (isSparksOwn(required)) {
      Function1<PartitionedFile, Iterator<?>> own =
          reader(session, data, partition, required, filters, options, conf);
      Option<Object> numbers = required.getFieldIndex(ROW_INDEX);
      return Unchecked.cast(
          numbers.isDefined() ? new NumberedReader(own, (Integer) numbers.get()) : own);
    }
    StructType read = withTypesRead(required);
    if (!Arrays.asList(read.fieldNames()).contains(ROW_INDEX)) {
      read = read.add(ROW_INDEX, DataTypes.LongType, true);
    }
    ScanColumn[] columns = new ScanColumn[required.length() + partition.length()];
    for (int i = 0; i < columns.length; i++) {
      boolean fromFile = i < required.length();
      StructField field =
          fromFile ? required.fields()[i] : partition.fields()[i - required.length()];
      columns[i] =
          fromFile
              ? column(i, field, read.fields()[i].dataType(), read.fieldIndex(ROW_INDEX))
              : new ScanColumn(i - required.length() + read.length(), field.dataType());
    }
    SerializableConfiguration configuration = new SerializableConfiguration(conf);
    Broadcast<SerializableConfiguration> shared =
        session
            .sparkContext()
            .broadcast(
                configuration,
                scala.reflect.ClassTag$.MODULE$.apply(SerializableConfiguration.class));
    Function1<PartitionedFile, Iterator<?>> reader =
        reader(session, data, partition, read, filters, options, conf);
    return Unchecked.cast(
        new ScanReader(reader, columns, read.fieldIndex(ROW_INDEX), root(), shared));
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
    return read instanceof DecimalType decimalType
        ? new NarrowDecimal(position, decimalType, (DecimalType) type)
        : new NarrowNested(position, read, type);
  }

  @Override
  protected StructType inFiles() {
    StructType all = withTypesRead(columns());
    return names == null ? all : names.of(all);
  }

  private StructType withTypesRead(StructType required) {
    StructField[] fields = new StructField[required.length()];
    for (int i = 0; i < fields.length; i++) {
      StructField field = required.fields()[i];
      Option<Object> at = readAs.getFieldIndex(field.name());
      DataType type = field.dataType();
      if (at.isDefined()) {
        type = NarrowNested.part(type, readAs.fields()[(Integer) at.get()].dataType());
      }
      fields[i] = new StructField(field.name(), type, field.nullable(), field.metadata());
    }
    return new StructType(fields);
  }

  /**
   * Returns Spark's reader, which reads the columns of the selection first if other columns are
   * required, too.
   */
  private Function1<PartitionedFile, Iterator<?>> reader(
      SparkSession session,
      StructType data,
      StructType partition,
      StructType required,
      Seq<Filter> filters,
      Map<String, String> options,
      Configuration conf) {
    boolean inBatches = options.get(FileFormat$.MODULE$.OPTION_RETURNING_BATCH()).contains("true");
    StructType first =
        selection == null || !inBatches ? null : SelectingReader.columns(selection, data);
    if (first == null
        || Arrays.asList(first.fieldNames()).containsAll(Arrays.asList(required.fieldNames()))) {
      return whole(session, data, partition, required, filters, options, conf);
    }
    // The second reader needs its own configuration, because Spark passes the columns to a reader
    // in it.
    Configuration own = new Configuration(conf);
    return new SelectingReader(
        whole(session, data, partition, required, filters, options, conf),
        whole(session, data, partition, first, filters, options, own),
        first.fieldIndex(ROW_INDEX),
        SelectingReader.bound(selection));
  }

  /**
   * Returns Spark's reader, using the names in files. The configuration is not shared with other
   * scans.
   */
  private Function1<PartitionedFile, Iterator<?>> whole(
      SparkSession session,
      StructType data,
      StructType partition,
      StructType required,
      Seq<Filter> filters,
      Map<String, String> options,
      Configuration conf) {
    if (names == null) {
      return Unchecked.cast(
          super.buildReaderWithPartitionValues(
              session, data, partition, required, filters, options, conf));
    }
    Seq<Filter> pushed = names.of(filters);
    if (byId) {
      conf.setBoolean("spark.sql.parquet.fieldId.read.enabled", true);
      // Spark prunes row groups by the names of columns, but in a file another column may have the
      // name.
      pushed = Plans.none();
    }
    return Unchecked.cast(
        super.buildReaderWithPartitionValues(
            session, names.of(data), partition, names.of(required), pushed, options, conf));
  }
}
