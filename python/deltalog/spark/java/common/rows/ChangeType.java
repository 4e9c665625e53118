package io.deltalog.spark;

import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.execution.datasources.PartitionedFile;
import org.apache.spark.sql.execution.vectorized.ConstantColumnVector;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * The change type of a row in a change data feed. For files that contain only inserted or only
 * deleted rows, the planner provides the type. Other files have a column for it.
 */
public class ChangeType extends ScanColumn {
  public static final String NAME = "_change_type";

  public ChangeType(int position) {
    super(position, DataTypes.StringType);
  }

  @Override
  public ColumnVector vector(ColumnarBatch batch, PartitionedFile file) {
    String known = FileFacts.changeType(file);
    if (known == null) {
      return super.vector(batch, file);
    }
    ConstantColumnVector constant = new ConstantColumnVector(batch.numRows(), type);
    constant.setUtf8String(UTF8String.fromString(known));
    return constant;
  }

  @Override
  public Expression expression(PartitionedFile file) {
    String known = FileFacts.changeType(file);
    return known == null
        ? super.expression(file)
        : Literal.create(UTF8String.fromString(known), type);
  }
}
