package io.deltalog.spark;

import java.math.BigDecimal;
import java.math.BigInteger;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.execution.datasources.FileStatusWithMetadata;
import org.apache.spark.sql.execution.datasources.PartitionDirectory;
import org.apache.spark.sql.types.*;
import org.apache.spark.unsafe.types.UTF8String;
import scala.collection.Iterator;

/**
 * The files of a scan as the planner packs them. What is made of them here does not grow with their number: a directory unpacks its files when Spark
 * walks over them.
 *
 * Big endian: i64 files of the snapshot; i32 length and the root's path; i32 D directories, each the partition row (per column u8 present and the value in Catalyst's form),
 * i32 F files, i32 length of them, and the files as PackedFiles has them.
 */
public class PackedListing {
  private final StructType partitionSchema;
  private final List directories = new ArrayList();
  private final long total;
  private int count = 0;

  public PackedListing(ByteBuffer bytes, StructType partitionSchema, PartitionFilter filter) {
    this.partitionSchema = partitionSchema;
    this.total = bytes.getLong();
    PackedRoot root = new PackedRoot(PackedFiles.text(bytes));
    for (int left = bytes.getInt(); left > 0; left--) {
      InternalRow partition = partition(bytes);
      int files = bytes.getInt();
      int length = bytes.getInt();
      ByteBuffer packed = (ByteBuffer) bytes.slice();
      packed.limit(length);
      bytes.position(bytes.position() + length);
      if (filter.keeps(partition)) {
        count += files;
        directories.add(new PartitionDirectory(partition, new PackedFiles(packed, files, root)));
      }
    }
  }

  /** How many files are listed. */
  public int count() {
    return count;
  }

  /** How many files the snapshot has. */
  public long total() {
    return total;
  }

  public scala.collection.immutable.Seq directories() {
    return scala.jdk.javaapi.CollectionConverters.asScala(directories).toSeq();
  }

  public String[] paths() {
    String[] paths = new String[count];
    int next = 0;
    for (int i = 0; i < directories.size(); i++) {
      Iterator files = ((PartitionDirectory) directories.get(i)).files().iterator();
      while (files.hasNext()) {
        paths[next++] = ((FileStatusWithMetadata) files.next()).getPath().toUri().toString();
      }
    }
    return paths;
  }

  private InternalRow partition(ByteBuffer bytes) {
    StructField[] fields = partitionSchema.fields();
    Object[] values = new Object[fields.length];
    for (int i = 0; i < fields.length; i++) {
      values[i] = bytes.get() == 0 ? null : value(fields[i].dataType(), bytes);
    }
    return new GenericInternalRow(values);
  }

  private static Object value(DataType type, ByteBuffer bytes) {
    if (type instanceof StringType) {
      return UTF8String.fromBytes(PackedFiles.raw(bytes));
    } else if (type instanceof BooleanType) {
      return Boolean.valueOf(bytes.get() != 0);
    } else if (type instanceof ByteType) {
      return Byte.valueOf((byte) bytes.getInt());
    } else if (type instanceof ShortType) {
      return Short.valueOf((short) bytes.getInt());
    } else if (type instanceof IntegerType || type instanceof DateType) {
      return Integer.valueOf(bytes.getInt());
    } else if (type instanceof LongType || type instanceof TimestampType || type instanceof TimestampNTZType) {
      return Long.valueOf(bytes.getLong());
    } else if (type instanceof FloatType) {
      return Float.valueOf(bytes.getFloat());
    } else if (type instanceof DoubleType) {
      return Double.valueOf(bytes.getDouble());
    } else if (type instanceof BinaryType) {
      return PackedFiles.raw(bytes);
    } else if (type instanceof DecimalType) {
      DecimalType decimal = (DecimalType) type;
      BigDecimal exact = new BigDecimal(new BigInteger(PackedFiles.raw(bytes)), decimal.scale());
      return Decimal.apply(exact, decimal.precision(), decimal.scale());
    }
    throw new UnsupportedOperationException("a partition column of type " + type.sql() + " is not supported yet by deltalog");
  }
}
