package io.deltalog.spark;

import java.lang.reflect.Field;
import java.lang.reflect.Modifier;
import org.apache.hadoop.conf.Configuration;
import org.apache.parquet.HadoopReadOptions;
import org.apache.parquet.hadoop.ParquetFileReader;
import org.apache.parquet.hadoop.ParquetRecordReader;
import org.apache.spark.sql.execution.datasources.RecordReaderIterator;
import org.apache.spark.sql.execution.datasources.parquet.SpecificParquetRecordReaderBase;
import org.apache.spark.sql.execution.datasources.parquet.VectorizedParquetRecordReader;
import scala.collection.Iterator;

/**
 * Finds the objects inside Spark's reader of a Parquet file, by reflection. Each method returns
 * null if this version of Spark has different fields.
 */
final class ParquetReaders {
  /** The field for the reader of row groups in a VectorizedParquetRecordReader. */
  static final Field ROW_GROUPS =
      HiddenFields.orNull(SpecificParquetRecordReaderBase.class, "reader");

  private static final Field RECORDS = HiddenFields.orNull(RecordReaderIterator.class, "rowReader");
  private static final Field INTERNAL =
      HiddenFields.orNull(ParquetRecordReader.class, "internalReader");

  private static final Field OPTIONS = HiddenFields.orNull(ParquetFileReader.class, "options");

  private static final String SPARK = "org.apache.spark.";

  private ParquetReaders() {}

  /** Returns the batch reader from which the rows come, or null if they do not come from one. */
  static VectorizedParquetRecordReader ofBatches(Iterator<?> rows) {
    return records(rows) instanceof VectorizedParquetRecordReader batches ? batches : null;
  }

  /**
   * Returns the open file that these rows come from. Works only before any part of the reader is
   * replaced.
   */
  static ParquetFileReader file(Iterator<?> rows) {
    Object records = records(rows);
    if (records instanceof VectorizedParquetRecordReader) {
      return inner(get(ROW_GROUPS, records));
    }
    return records instanceof ParquetRecordReader ? inner(get(INTERNAL, records)) : null;
  }

  /** Returns the configuration with which a file was opened. */
  static Configuration configuration(ParquetFileReader file) {
    return get(OPTIONS, file) instanceof HadoopReadOptions options ? options.getConf() : null;
  }

  /** Returns Spark's reader of these rows: of batches or of single rows. */
  static Object records(Iterator<?> rows) {
    Object own = rows instanceof GuardedRows guarded ? guarded.source() : rows;
    Object records = get(RECORDS, held(own, RecordReaderIterator.class));
    return records instanceof VectorizedParquetRecordReader
        ? records
        : held(records, ParquetRecordReader.class);
  }

  /** Returns an object of the given type: the owner itself, or the object that it wraps. */
  private static Object held(Object owner, Class<?> type) {
    if (owner == null || type.isInstance(owner) || !owner.getClass().getName().startsWith(SPARK)) {
      return type.isInstance(owner) ? owner : null;
    }
    for (Field field : owner.getClass().getDeclaredFields()) {
      field.setAccessible(true);
      Object value = Modifier.isStatic(field.getModifiers()) ? null : get(field, owner);
      if (type.isInstance(value)) {
        return value;
      }
    }
    return null;
  }

  private static ParquetFileReader inner(Object reader) {
    Object file =
        reader == null ? null : get(HiddenFields.orNull(reader.getClass(), "reader"), reader);
    return file instanceof ParquetFileReader own ? own : null;
  }

  private static Object get(Field field, Object object) {
    try {
      return field == null || object == null ? null : field.get(object);
    } catch (IllegalAccessException e) {
      return null;
    }
  }
}
