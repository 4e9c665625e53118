package io.deltalog.spark;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.catalyst.expressions.*;
import org.apache.spark.sql.catalyst.optimizer.BooleanSimplification$;
import org.apache.spark.sql.catalyst.optimizer.ComputeCurrentTime$;
import org.apache.spark.sql.catalyst.optimizer.ConstantFolding$;
import org.apache.spark.sql.catalyst.optimizer.ReplaceExpressions$;
import org.apache.spark.sql.catalyst.optimizer.RewriteWithExpression$;
import org.apache.spark.sql.catalyst.optimizer.UnwrapCastInBinaryComparison$;
import org.apache.spark.sql.catalyst.plans.logical.Assignment;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType$;
import scala.Option;
import scala.Tuple2;
import scala.collection.immutable.Nil$;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/** Functions on Spark's plans, including those that differ between releases of Spark. */
public class Plans {
  private Plans() {}

  public static <T> Seq<T> seq(List<? extends T> items) {
    return Unchecked.cast(CollectionConverters.asScala(items).toSeq());
  }

  public static <T> List<T> list(Seq<? extends T> items) {
    return new ArrayList<>(CollectionConverters.asJava(items));
  }

  /** Returns a view of a Scala collection that Java can loop over, without a copy. */
  public static <T> Iterable<T> each(scala.collection.Iterable<T> items) {
    return CollectionConverters.asJava(items);
  }

  public static <T> Seq<T> none() {
    return Unchecked.cast(Nil$.MODULE$);
  }

  public static Alias alias(Expression value, String name, ExprId id) {
    return new Alias(value, name, id, Plans.none(), Option.empty(), Plans.none());
  }

  public static Alias alias(Expression value, String name) {
    return alias(value, name, NamedExpression$.MODULE$.newExprId());
  }

  public static Literal integer(int value) {
    return new Literal(Integer.valueOf(value), DataTypes.IntegerType);
  }

  public static Literal bigint(long value) {
    return new Literal(Long.valueOf(value), DataTypes.LongType);
  }

  public static Literal nothing(DataType type) {
    return new Literal(null, type);
  }

  /** Returns a new column that can store the values of both columns. */
  public static Attribute columnOf(Attribute column, Expression other) {
    DataType type = StructType$.MODULE$.unionLikeMerge(column.dataType(), other.dataType());
    boolean nullable = column.nullable() || other.nullable();
    return new AttributeReference(
        column.name(),
        type,
        nullable,
        column.metadata(),
        NamedExpression$.MODULE$.newExprId(),
        Plans.none());
  }

  /** Returns the value of the first branch whose condition is true; branches are Tuple2s. */
  public static Expression choose(
      List<Tuple2<Expression, Expression>> branches, Expression otherwise) {
    return branches.isEmpty() ? otherwise : new CaseWhen(seq(branches), Option.apply(otherwise));
  }

  public static Tuple2<Expression, Expression> branch(Expression condition, Expression value) {
    return new Tuple2<>(condition, value);
  }

  /**
   * Simplifies a condition on the columns of a relation in the same way as the optimizer. The type
   * of the condition does not change.
   */
  public static Expression simplified(Expression condition, LogicalPlan relation) {
    LogicalPlan filter = new Filter(condition, relation);
    filter = ReplaceExpressions$.MODULE$.apply(filter);
    filter = RewriteWithExpression$.MODULE$.apply(filter);
    filter = ConstantFolding$.MODULE$.apply(filter);
    filter = UnwrapCastInBinaryComparison$.MODULE$.apply(filter);
    filter = BooleanSimplification$.MODULE$.apply(filter);
    // The simplified condition may need additional columns, in which case it is not used.
    boolean isSame = filter instanceof Filter simple && simple.child() == relation;
    return isSame ? ((Filter) filter).condition() : condition;
  }

  /** Returns the names of the columns that are assigned, as a whole or in part. */
  public static List<String> assigned(Seq<Assignment> assignments) {
    List<String> names = new ArrayList<>();
    for (Assignment assignment : list(assignments)) {
      for (Attribute column : list(assignment.key().references().toSeq())) {
        names.add(column.name());
      }
    }
    return names;
  }

  /**
   * Returns a statement in which the current time is fixed to the time of this call, for all jobs
   * of the statement.
   */
  public static LogicalPlan atOneTime(LogicalPlan statement) {
    return ComputeCurrentTime$.MODULE$.apply(statement);
  }

  /** Returns the parts of a condition that must all be true. */
  public static List<Expression> conjuncts(Expression condition) {
    List<Expression> parts = new ArrayList<>();
    split(condition, parts);
    return parts;
  }

  private static void split(Expression condition, List<Expression> parts) {
    if (condition instanceof And and) {
      split(and.left(), parts);
      split(and.right(), parts);
    } else {
      parts.add(condition);
    }
  }
}
