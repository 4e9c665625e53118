package io.deltalog.spark;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.codegen.CodegenContext;
import org.apache.spark.sql.catalyst.expressions.codegen.ExprCode;
import org.apache.spark.sql.types.DataType;
import scala.collection.immutable.IndexedSeq;
import scala.collection.immutable.Seq;

/**
 * A value that is assigned to a column with fields, in a MERGE that may add columns. The value may
 * lack some of these fields, which Spark's analyzer would refuse. The analyzer sees the type of the
 * column instead, and the value is fitted to it when the statement is executed (FieldFit).
 */
public class EvolvedValue extends Expression {
  private final Expression value;
  private final Expression old;
  private final DataType type;

  /**
   * Creates the value for a column of this type. If the column keeps fields that the value lacks,
   * old is that column, otherwise null.
   */
  public EvolvedValue(Expression value, Expression old, DataType type) {
    this.value = value;
    this.old = old;
    this.type = type;
  }

  /** Returns the value extended to all fields of the column. */
  public Expression fitted() {
    return FieldFit.fitted(value, type, old);
  }

  /** Returns the expression with each EvolvedValue in it replaced with the fitted value. */
  public static Expression fitted(Expression expression) {
    if (expression instanceof EvolvedValue evolvedValue) {
      return evolvedValue.fitted();
    }
    List<Expression> children = Plans.list(expression.children());
    boolean isSame = true;
    for (int i = 0; i < children.size(); i++) {
      Expression child = fitted(children.get(i));
      isSame = isSame && child == children.get(i);
      children.set(i, child);
    }
    return isSame ? expression : expression.withNewChildren(Plans.seq(children));
  }

  @Override
  public DataType dataType() {
    return type;
  }

  @Override
  public boolean nullable() {
    return value.nullable();
  }

  @Override
  public Seq<Expression> children() {
    List<Expression> children = new ArrayList<>();
    children.add(value);
    if (old != null) {
      children.add(old);
    }
    return Plans.seq(children);
  }

  @Override
  public Expression withNewChildrenInternal(IndexedSeq<Expression> children) {
    Expression keeping = old == null ? null : children.apply(1);
    return new EvolvedValue(children.apply(0), keeping, type);
  }

  @Override
  public Object eval(InternalRow row) {
    throw new IllegalStateException("deltalog: a value of a MERGE was not fitted to its column");
  }

  @Override
  public ExprCode doGenCode(CodegenContext context, ExprCode code) {
    throw new IllegalStateException("deltalog: a value of a MERGE was not fitted to its column");
  }

  /** Returns the number of parameters of the constructor, which Spark needs to copy the node. */
  @Override
  public int productArity() {
    return 3;
  }

  @Override
  public Object productElement(int index) {
    return index == 0 ? (Object) value : index == 1 ? (Object) old : (Object) type;
  }

  @Override
  public boolean canEqual(Object other) {
    return other instanceof EvolvedValue;
  }
}
