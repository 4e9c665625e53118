package io.deltalog.spark;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.mapred.FileSplit;
import org.apache.hadoop.mapreduce.JobID;
import org.apache.hadoop.mapreduce.RecordReader;
import org.apache.hadoop.mapreduce.TaskAttemptContext;
import org.apache.hadoop.mapreduce.TaskAttemptID;
import org.apache.hadoop.mapreduce.TaskID;
import org.apache.hadoop.mapreduce.TaskType;
import org.apache.hadoop.mapreduce.task.TaskAttemptContextImpl;
import org.apache.parquet.hadoop.ParquetFileReader;
import org.apache.parquet.hadoop.metadata.ParquetMetadata;
import org.apache.parquet.schema.GroupType;
import org.apache.parquet.schema.LogicalTypeAnnotation;
import org.apache.parquet.schema.MessageType;
import org.apache.parquet.schema.Type;
import org.apache.spark.sql.execution.datasources.PartitionedFile;
import org.apache.spark.sql.execution.datasources.VariantMetadata;
import org.apache.spark.sql.execution.datasources.parquet.ParquetReadSupport;
import org.apache.spark.sql.execution.datasources.parquet.ParquetToSparkSchemaConverter;
import org.apache.spark.sql.execution.datasources.parquet.ParquetUtils;
import org.apache.spark.sql.execution.datasources.parquet.VectorizedParquetRecordReader;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.MetadataBuilder;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import scala.Function1;
import scala.Option;
import scala.collection.Iterator;

/**
 * Reads structs when a file has none of their requested fields. Spark 4.0 would return NULL for
 * such a struct in every row. So the reader also reads one of the struct's other fields, which
 * shows in which rows the struct is NULL. This field comes after the requested fields, where Spark
 * ignores it. Runs in tasks.
 */
public class StructNulls extends GuardedReader {
  private final StructType columns;
  private final StructType partition;
  private final boolean isCaseSensitive;
  private final boolean isById;

  private StructNulls(
      Function1<PartitionedFile, Iterator<?>> reader,
      String root,
      StructType columns,
      StructType partition,
      Configuration conf) {
    super(reader, root);
    this.columns = columns;
    this.partition = partition;
    this.isCaseSensitive = conf.getBoolean("spark.sql.caseSensitive", false);
    this.isById = conf.getBoolean("spark.sql.parquet.fieldId.read.enabled", false);
  }

  /** Prepares the configuration of a scan. */
  static void configure(Configuration conf) {}

  /**
   * Returns Spark's reader of these columns, wrapped in the guard. If any column contains a struct,
   * the reader also reads the additional fields in files that have none of a struct's requested
   * fields.
   */
  static GuardedReader guarded(
      Function1<PartitionedFile, Iterator<?>> reader,
      String root,
      StructType columns,
      StructType partition,
      Configuration conf) {
    for (StructField column : columns.fields()) {
      if (hasStruct(column.dataType())) {
        return new StructNulls(reader, root, columns, partition, conf);
      }
    }
    return new GuardedReader(reader, root);
  }

  private static boolean hasStruct(DataType type) {
    return type instanceof StructType
        || (type instanceof ArrayType array && hasStruct(array.elementType()))
        || (type instanceof MapType map
            && (hasStruct(map.keyType()) || hasStruct(map.valueType())));
  }

  @Override
  protected Iterator<?> open(PartitionedFile file) {
    Iterator<?> rows = super.open(file);
    ParquetFileReader open = ParquetReaders.file(rows);
    Configuration conf = open == null ? null : ParquetReaders.configuration(open);
    if (conf == null) {
      throw new IllegalStateException("Spark's reader of " + file.toPath() + " is not known");
    }
    StructType wider =
        wider(columns, open.getFileMetaData().getSchema(), new ParquetToSparkSchemaConverter(conf));
    if (wider != columns) {
      Configuration changed = new Configuration(conf);
      changed.set(ParquetReadSupport.SPARK_ROW_REQUESTED_SCHEMA(), wider.json());
      try {
        startAgain((RecordReader<?, ?>) ParquetReaders.records(rows), open, file, changed);
      } catch (IOException e) {
        throw new UncheckedIOException(e);
      } catch (InterruptedException e) {
        Thread.currentThread().interrupt();
        throw new IllegalStateException(e);
      }
    }
    return rows;
  }

  private void startAgain(
      RecordReader<?, ?> records, ParquetFileReader open, PartitionedFile file, Configuration conf)
      throws IOException, InterruptedException {
    FileSplit split = new FileSplit(file.toPath(), file.start(), file.length(), new String[0]);
    TaskAttemptID attempt = new TaskAttemptID(new TaskID(new JobID(), TaskType.MAP, 0), 0);
    TaskAttemptContext context = new TaskAttemptContextImpl(conf, attempt);
    ParquetMetadata footer = open.getFooter();
    records.close();
    if (records instanceof VectorizedParquetRecordReader batches) {
      batches.initialize(split, context, Option.apply(footer));
      batches.initBatch(partition, file.partitionValues());
    } else {
      records.initialize(split, context);
    }
  }

  /** Returns the schema with the additional fields; returns the same object if none are needed. */
  private StructType wider(
      StructType read, GroupType stored, ParquetToSparkSchemaConverter converter) {
    List<StructField> fields = new ArrayList<>(Arrays.asList(read.fields()));
    boolean isFound = stored instanceof MessageType;
    boolean isWider = false;
    for (int i = 0; i < fields.size(); i++) {
      StructField field = fields.get(i);
      Type found = find(field, stored);
      if (found != null) {
        isFound = true;
        DataType type = wider(field.dataType(), found, converter);
        isWider |= type != field.dataType();
        fields.set(i, new StructField(field.name(), type, field.nullable(), field.metadata()));
      }
    }
    if (!isFound) {
      fields.add(other(cheapest(stored), read, converter));
    }
    return isFound && !isWider ? read : new StructType(fields.toArray(new StructField[0]));
  }

  private DataType wider(DataType read, Type stored, ParquetToSparkSchemaConverter converter) {
    if (stored.isPrimitive()) {
      return read;
    }
    GroupType group = stored.asGroupType();
    if (read instanceof StructType struct) {
      return VariantMetadata.isVariantStruct(struct) ? read : wider(struct, group, converter);
    }
    if (read instanceof ArrayType array) {
      DataType element = wider(array.elementType(), elements(group), converter);
      return element == array.elementType() ? read : new ArrayType(element, array.containsNull());
    }
    if (read instanceof MapType map) {
      GroupType entries = group.getType(0).asGroupType();
      DataType key = wider(map.keyType(), entries.getType(0), converter);
      DataType value = wider(map.valueType(), entries.getType(1), converter);
      return key == map.keyType() && value == map.valueType()
          ? read
          : new MapType(key, value, map.valueContainsNull());
    }
    return read;
  }

  /**
   * Returns the element field of a list, as Spark determines it. Some writers do not write a group
   * around the elements.
   */
  private static Type elements(GroupType list) {
    if (list.getLogicalTypeAnnotation() == null && list.isRepetition(Type.Repetition.REPEATED)) {
      return list;
    }
    Type repeated = list.getType(0);
    boolean isElement =
        repeated.isPrimitive()
            || repeated.asGroupType().getFieldCount() > 1
            || repeated.getName().equals("array")
            || repeated.getName().equals(list.getName() + "_tuple");
    return isElement ? repeated : repeated.asGroupType().getType(0);
  }

  private Type find(StructField field, GroupType stored) {
    boolean hasId = isById && ParquetUtils.hasFieldId(field);
    for (Type type : stored.getFields()) {
      boolean isFound;
      if (hasId) {
        isFound = type.getId() != null && type.getId().intValue() == ParquetUtils.getFieldId(field);
      } else {
        isFound =
            isCaseSensitive
                ? type.getName().equals(field.name())
                : type.getName().equalsIgnoreCase(field.name());
      }
      if (isFound) {
        return type;
      }
    }
    return null;
  }

  /**
   * Returns a field of a file as an additional field to read. It is renamed if a requested field
   * has the same name.
   */
  private static StructField other(
      Type stored, StructType read, ParquetToSparkSchemaConverter converter) {
    StructField field = converter.convert(new MessageType("other", stored)).fields()[0];
    if (stored.getId() == null || read.getFieldIndex(field.name()).isEmpty()) {
      return field;
    }
    MetadataBuilder id = new MetadataBuilder();
    id.putLong(ParquetUtils.FIELD_ID_METADATA_KEY(), stored.getId().intValue());
    return new StructField(field.name() + " (other)", field.dataType(), true, id.build());
  }

  /**
   * Returns the field of a struct that is cheapest to read. If this field is itself a struct, only
   * its cheapest field is kept.
   */
  private static Type cheapest(GroupType struct) {
    Type cheapest = null;
    for (Type field : struct.getFields()) {
      boolean isStruct = !field.isPrimitive() && !isRepeated(field);
      Type part =
          isStruct ? field.asGroupType().withNewFields(cheapest(field.asGroupType())) : field;
      if (cheapest == null || cost(part) < cost(cheapest)) {
        cheapest = part;
      }
    }
    return cheapest;
  }

  private static boolean isRepeated(Type type) {
    return type.isRepetition(Type.Repetition.REPEATED) || type.getLogicalTypeAnnotation() != null;
  }

  /**
   * Returns how expensive a field is to read. Among primitive types, timestamps and dates cost
   * most, because Spark may refuse to read old values of these types.
   */
  private static int cost(Type type) {
    if (!type.isPrimitive()) {
      return isRepeated(type) ? 1000 : 100 + cost(type.asGroupType().getType(0));
    }
    LogicalTypeAnnotation meaning = type.getLogicalTypeAnnotation();
    boolean isTime =
        meaning instanceof LogicalTypeAnnotation.DateLogicalTypeAnnotation
            || meaning instanceof LogicalTypeAnnotation.TimestampLogicalTypeAnnotation;
    return switch (type.asPrimitiveType().getPrimitiveTypeName()) {
      case BOOLEAN -> 1;
      case INT32, FLOAT -> isTime ? 50 : 4;
      case INT64, DOUBLE -> isTime ? 50 : 8;
      case INT96 -> 50;
      default -> 16;
    };
  }
}
