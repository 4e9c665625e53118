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
 * A struct, array or map that contains decimals widened from bytes or shorts, see NarrowDecimal. Such columns
 * are read row by row.
 */
public class NarrowNested extends ScanColumn {
  private final DataType read;

  public NarrowNested(int position, DataType read, DataType type) {
    super(position, type);
    this.read = read;
  }

  public ColumnVector vector(ColumnarBatch batch, PartitionedFile file) {
    throw new IllegalStateException("columns of the type " + type.sql() + " are read row by row");
  }

  /** Casts a value; one that the narrower type cannot hold is an error. */
  public Expression expression(PartitionedFile file) {
    return new Cast(new ScanColumn(position, read).expression(file), type, Option.apply("UTC"), EvalMode$.MODULE$.ANSI());
  }

  /**
   * Returns the part of the type read that belongs to the part of the column that a query asks for, which may
   * leave out fields of structs.
   */
  public static DataType part(DataType wanted, DataType read) {
    if (wanted instanceof StructType) {
      StructField[] fields = new StructField[((StructType) wanted).length()];
      for (int i = 0; i < fields.length; i++) {
        StructField field = ((StructType) wanted).fields()[i];
        StructField whole = ((StructType) read).fields()[((StructType) read).fieldIndex(field.name())];
        fields[i] = new StructField(field.name(), part(field.dataType(), whole.dataType()), field.nullable(), field.metadata());
      }
      return new StructType(fields);
    }
    if (wanted instanceof ArrayType) {
      ArrayType array = (ArrayType) wanted;
      return new ArrayType(part(array.elementType(), ((ArrayType) read).elementType()), array.containsNull());
    }
    if (wanted instanceof MapType) {
      MapType map = (MapType) wanted;
      return new MapType(part(map.keyType(), ((MapType) read).keyType()), part(map.valueType(), ((MapType) read).valueType()), map.valueContainsNull());
    }
    return read;
  }
}
