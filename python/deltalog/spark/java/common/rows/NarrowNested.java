package io.deltalog.spark;

import org.apache.spark.sql.catalyst.expressions.Cast;
import org.apache.spark.sql.catalyst.expressions.EvalMode$;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.execution.datasources.PartitionedFile;
import org.apache.spark.sql.types.*;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import scala.Option;

/**
 * A struct, array or map that contains decimals widened from bytes or shorts. Such columns are read
 * row by row. See NarrowDecimal.
 */
public class NarrowNested extends ScanColumn {
  private final DataType read;

  public NarrowNested(int position, DataType read, DataType type) {
    super(position, type);
    this.read = read;
  }

  @Override
  public ColumnVector vector(ColumnarBatch batch, PartitionedFile file) {
    throw new IllegalStateException("columns of type " + type.sql() + " are read row by row");
  }

  /** Returns a cast to the narrower type. It throws an error for a value that does not fit. */
  @Override
  public Expression expression(PartitionedFile file) {
    Expression stored = new ScanColumn(position, read).expression(file);
    return new Cast(stored, type, Option.apply("UTC"), EvalMode$.MODULE$.ANSI());
  }

  /**
   * Returns the part of type `read` that corresponds to the type `wanted`, which may lack fields of
   * structs.
   */
  public static DataType part(DataType wanted, DataType read) {
    if (wanted instanceof StructType structType) {
      StructField[] fields = new StructField[structType.length()];
      for (int i = 0; i < fields.length; i++) {
        StructField field = structType.fields()[i];
        StructField whole =
            ((StructType) read).fields()[((StructType) read).fieldIndex(field.name())];
        DataType type = part(field.dataType(), whole.dataType());
        fields[i] = new StructField(field.name(), type, field.nullable(), field.metadata());
      }
      return new StructType(fields);
    }
    if (wanted instanceof ArrayType array) {

      return new ArrayType(
          part(array.elementType(), ((ArrayType) read).elementType()), array.containsNull());
    }
    if (wanted instanceof MapType map) {

      DataType key = part(map.keyType(), ((MapType) read).keyType());
      DataType value = part(map.valueType(), ((MapType) read).valueType());
      return new MapType(key, value, map.valueContainsNull());
    }
    return read;
  }
}
