package io.deltalog.spark;

import java.io.Serializable;
import java.util.Arrays;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.codegen.CodegenContext;
import org.apache.spark.sql.catalyst.expressions.codegen.CodegenFallback;
import org.apache.spark.sql.catalyst.expressions.codegen.ExprCode;
import org.apache.spark.sql.types.DataType;
import scala.collection.immutable.IndexedSeq;
import scala.collection.immutable.Seq;

/**
 * A value of limited size in an expression of a table. The size is checked after the value was
 * computed. If the size can be estimated from the operands, it is also checked before.
 */
public class BoundedValue extends Expression implements CodegenFallback, Serializable {
  private static final long serialVersionUID = 1L;

  /** The function. Its arguments are references to `operands` by position, or constants. */
  private final Expression call;

  private final Expression[] operands;
  private final RuleAllowance allowance;

  /** Creates the value of a call whose references point to the operands. */
  public BoundedValue(Expression call, Expression[] operands, RuleAllowance allowance) {
    this.call = call;
    this.operands = operands;
    this.allowance = allowance;
  }

  @Override
  public Object eval(InternalRow row) {
    allowance.enter();
    try {
      Object[] values = new Object[operands.length];
      for (int i = 0; i < operands.length; i++) {
        values[i] = operands[i].eval(row);
      }
      InternalRow known = new GenericInternalRow(values);
      allowance.ensure(atMost(known));
      Object value = call.eval(known);
      allowance.take(ValueSize.of(value, call.dataType(), allowance.left()));
      return value;
    } finally {
      allowance.leave();
    }
  }

  /** Returns the maximum size of the value in bytes, given its arguments. */
  private double atMost(InternalRow known) {
    if (call.children().isEmpty()) {
      return 0; // It is a reference to an operand that has been computed.
    }
    Object[] arguments = new Object[call.children().size()];
    DataType[] types = new DataType[arguments.length];
    double bytes = 0;
    for (int i = 0; i < arguments.length; i++) {
      Expression argument = call.children().apply(i);
      types[i] = argument.dataType();
      arguments[i] = argument.eval(known);
      bytes += ValueSize.of(arguments[i], types[i], allowance.left());
    }
    return GrowthBounds.of(call, arguments, types, bytes);
  }

  @Override
  public DataType dataType() {
    return call.dataType();
  }

  @Override
  public boolean nullable() {
    return call.nullable();
  }

  @Override
  public Seq<Expression> children() {
    return Plans.seq(Arrays.asList(operands));
  }

  @Override
  public Expression withNewChildrenInternal(IndexedSeq<Expression> children) {
    Expression[] others = new Expression[operands.length];
    for (int i = 0; i < others.length; i++) {
      others[i] = children.apply(i);
    }
    return new BoundedValue(call, others, allowance);
  }

  @Override
  public ExprCode doGenCode(CodegenContext context, ExprCode code) {
    return CodegenFallback.super.doGenCode(context, code);
  }

  /** Returns the number of parameters of the constructor, which Spark needs to copy the node. */
  @Override
  public int productArity() {
    return 3;
  }

  @Override
  public Object productElement(int index) {
    return index == 0 ? (Object) call : index == 1 ? (Object) operands : (Object) allowance;
  }

  @Override
  public boolean canEqual(Object other) {
    return other instanceof BoundedValue;
  }
}
