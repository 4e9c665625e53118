package io.deltalog.spark;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.OpenOption;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.nio.file.StandardOpenOption;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.types.*;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * Reads strings, bytes and rows of values sequentially, as the planner has packed them (big
 * endian).
 */
public class PackedValues {
  private final ByteBuffer buffer;

  public PackedValues(ByteBuffer buffer) {
    this.buffer = buffer;
  }

  /**
   * Returns the bytes that Python packed. A large listing comes through a file, which is mapped and
   * deleted here, so that it does not take up the heap.
   */
  static ByteBuffer bytes(Object packed) {
    if (packed instanceof byte[] array) {
      return ByteBuffer.wrap(array);
    }
    Path file = Paths.get((String) packed, new String[0]);
    try {
      FileChannel channel = FileChannel.open(file, new OpenOption[] {StandardOpenOption.READ});
      try {
        return channel.map(FileChannel.MapMode.READ_ONLY, 0, channel.size());
      } finally {
        channel.close();
        Files.delete(file);
      }
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /**
   * Reads the header, i32 length and the version of the wheel that packed the bytes, and checks the
   * version. Classes of another version would misread the bytes.
   */
  public static PackedValues ofThisVersion(ByteBuffer buffer) {
    PackedValues packed = new PackedValues(buffer);
    String version = packed.text();
    if (!version.equals(Version.WHEEL)) {
      throw new IllegalStateException(
          "deltalog: Python has version "
              + version
              + ", but the JVM has Java classes of version "
              + Version.WHEEL
              + ": restart the application");
    }
    return packed;
  }

  public int count() {
    return buffer.getInt();
  }

  public String text() {
    return text(buffer);
  }

  public byte[] raw() {
    return raw(buffer);
  }

  /** Returns the next bytes in a separate buffer. */
  public ByteBuffer part() {
    int length = buffer.getInt();
    ByteBuffer part = buffer.slice();
    part.limit(length);
    buffer.position(buffer.position() + length);
    return part;
  }

  static String text(ByteBuffer buffer) {
    return new String(raw(buffer), StandardCharsets.UTF_8);
  }

  static byte[] raw(ByteBuffer buffer) {
    byte[] raw = new byte[buffer.getInt()];
    buffer.get(raw);
    return raw;
  }

  /** Reads a row: for each column u8 present and, if it is 1, the value in Catalyst's form. */
  public InternalRow row(StructType schema) {
    StructField[] fields = schema.fields();
    Object[] values = new Object[fields.length];
    for (int i = 0; i < fields.length; i++) {
      values[i] = buffer.get() == 0 ? null : value(fields[i].dataType());
    }
    return new GenericInternalRow(values);
  }

  private Object value(DataType type) {
    if (type instanceof StringType) {
      return UTF8String.fromBytes(raw(buffer));
    } else if (type instanceof BooleanType) {
      return Boolean.valueOf(buffer.get() != 0);
    } else if (type instanceof ByteType) {
      return Byte.valueOf((byte) buffer.getInt());
    } else if (type instanceof ShortType) {
      return Short.valueOf((short) buffer.getInt());
    } else if (type instanceof IntegerType || type instanceof DateType) {
      return Integer.valueOf(buffer.getInt());
    } else if (type instanceof LongType
        || type instanceof TimestampType
        || type instanceof TimestampNTZType) {
      return Long.valueOf(buffer.getLong());
    } else if (type instanceof FloatType) {
      return Float.valueOf(buffer.getFloat());
    } else if (type instanceof DoubleType) {
      return Double.valueOf(buffer.getDouble());
    } else if (type instanceof BinaryType) {
      return raw(buffer);
    } else if (type instanceof DecimalType decimal) {

      BigDecimal exact = new BigDecimal(new BigInteger(raw(buffer)), decimal.scale());
      return Decimal.apply(exact, decimal.precision(), decimal.scale());
    }
    throw new UnsupportedOperationException(
        "a value of type " + type.sql() + " is not supported yet by deltalog");
  }
}
