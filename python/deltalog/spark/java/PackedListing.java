package io.deltalog.spark;

import java.math.BigDecimal;
import java.math.BigInteger;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.execution.datasources.PartitionDirectory;
import org.apache.spark.sql.types.*;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * The files of a scan as the planner packs them, unpacked into Spark's form.
 *
 * Big endian: i32 P, P partition rows (per column u8 present and the value in Catalyst's form); i32 length and the root's path; i32 D
 * directories, each i32 partition row, i32 F, and F files: i64 size, i64 modification time, u8 relative, i32 length and the path.
 */
public class PackedListing {
  private final byte[] bytes;
  private final ByteBuffer buffer;
  private final StructType partitionSchema;
  private final List directories = new ArrayList();
  private final List listed = new ArrayList();
  private int files = 0;

  public PackedListing(byte[] bytes, StructType partitionSchema) {
    this.bytes = bytes;
    this.buffer = ByteBuffer.wrap(bytes);
    this.partitionSchema = partitionSchema;
    InternalRow[] partitions = new InternalRow[buffer.getInt()];
    for (int i = 0; i < partitions.length; i++) {
      partitions[i] = partition();
    }
    String root = text();
    for (int left = buffer.getInt(); left > 0; left--) {
      InternalRow values = partitions[buffer.getInt()];
      FileStatus[] members = new FileStatus[buffer.getInt()];
      for (int i = 0; i < members.length; i++) {
        members[i] = file(root);
      }
      files += members.length;
      listed.add(members);
      directories.add(PartitionDirectory.apply(values, members));
    }
  }

  public scala.collection.immutable.Seq directories() {
    return scala.jdk.javaapi.CollectionConverters.asScala(directories).toSeq();
  }

  public String[] paths() {
    String[] paths = new String[files];
    int next = 0;
    for (int i = 0; i < listed.size(); i++) {
      FileStatus[] members = (FileStatus[]) listed.get(i);
      for (int j = 0; j < members.length; j++) {
        paths[next++] = members[j].getPath().toUri().toString();
      }
    }
    return paths;
  }

  private FileStatus file(String root) {
    long size = buffer.getLong();
    long modified = buffer.getLong();
    boolean relative = buffer.get() != 0;
    String path = text();
    Path whole = new Path(relative ? root + "/" + path : path);
    return new FileStatus(size, false, 1, 134217728L, modified, whole);
  }

  private String text() {
    int length = buffer.getInt();
    String text = new String(bytes, buffer.position(), length, StandardCharsets.UTF_8);
    buffer.position(buffer.position() + length);
    return text;
  }

  private byte[] raw() {
    byte[] raw = new byte[buffer.getInt()];
    buffer.get(raw);
    return raw;
  }

  private InternalRow partition() {
    StructField[] fields = partitionSchema.fields();
    Object[] values = new Object[fields.length];
    for (int i = 0; i < fields.length; i++) {
      values[i] = buffer.get() == 0 ? null : value(fields[i].dataType());
    }
    return new GenericInternalRow(values);
  }

  private Object value(DataType type) {
    if (type instanceof StringType) {
      return UTF8String.fromBytes(raw());
    } else if (type instanceof BooleanType) {
      return Boolean.valueOf(buffer.get() != 0);
    } else if (type instanceof ByteType) {
      return Byte.valueOf((byte) buffer.getInt());
    } else if (type instanceof ShortType) {
      return Short.valueOf((short) buffer.getInt());
    } else if (type instanceof IntegerType || type instanceof DateType) {
      return Integer.valueOf(buffer.getInt());
    } else if (type instanceof LongType || type instanceof TimestampType || type instanceof TimestampNTZType) {
      return Long.valueOf(buffer.getLong());
    } else if (type instanceof FloatType) {
      return Float.valueOf(buffer.getFloat());
    } else if (type instanceof DoubleType) {
      return Double.valueOf(buffer.getDouble());
    } else if (type instanceof BinaryType) {
      return raw();
    } else if (type instanceof DecimalType) {
      DecimalType decimal = (DecimalType) type;
      BigDecimal exact = new BigDecimal(new BigInteger(raw()), decimal.scale());
      return Decimal.apply(exact, decimal.precision(), decimal.scale());
    }
    throw new UnsupportedOperationException("a partition column of type " + type.sql() + " is not supported yet by deltalog");
  }
}
