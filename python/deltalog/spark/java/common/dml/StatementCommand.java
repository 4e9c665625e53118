package io.deltalog.spark;

import java.util.Collections;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.plans.logical.Command;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Statistics;
import org.apache.spark.sql.catalyst.trees.TreePattern$;
import org.apache.spark.sql.catalyst.types.DataTypeUtils$;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import scala.Enumeration;
import scala.collection.immutable.IndexedSeq;
import scala.collection.immutable.Seq;

/**
 * An analyzed DELETE, UPDATE or MERGE. It is a leaf node, so the optimizer does not change it. It
 * returns one row with the result.
 */
public class StatementCommand extends LogicalPlan implements Command {
  private final LogicalPlan statement;
  private final Seq<Attribute> output;

  public StatementCommand(LogicalPlan statement, Seq<Attribute> output) {
    this.statement = statement;
    this.output = output;
  }

  /** Returns the columns of the result as attributes. */
  public static Seq<Attribute> counts(boolean isMerge) {
    return Plans.seq(Plans.list(DataTypeUtils$.MODULE$.toAttributes(columns(isMerge))));
  }

  /** Returns the columns of the result, with the names of the JVM connector. */
  static StructType columns(boolean isMerge) {
    StructType columns = new StructType().add("num_affected_rows", DataTypes.LongType, false);
    if (isMerge) {
      columns =
          columns
              .add("num_updated_rows", DataTypes.LongType, false)
              .add("num_deleted_rows", DataTypes.LongType, false)
              .add("num_inserted_rows", DataTypes.LongType, false);
    }
    return columns;
  }

  public LogicalPlan statement() {
    return statement;
  }

  @Override
  public Seq<Attribute> output() {
    return output;
  }

  @Override
  public Seq<Enumeration.Value> nodePatterns() {
    return Plans.seq(Collections.singletonList(TreePattern$.MODULE$.COMMAND()));
  }

  /** Does nothing. Scala would use this method to set a field of the trait. */
  @Override
  public void org$apache$spark$sql$catalyst$plans$logical$Command$_setter_$nodePatterns_$eq(
      Seq<Enumeration.Value> patterns) {}

  @Override
  public Seq<LogicalPlan> children() {
    return Plans.none();
  }

  @Override
  public LogicalPlan withNewChildrenInternal(IndexedSeq<LogicalPlan> children) {
    return this;
  }

  @Override
  public Statistics stats() {
    try {
      return CaseClass.create(Statistics.class, scala.math.BigInt.apply(1L));
    } catch (Exception e) {
      throw new IllegalStateException(
          "deltalog cannot use this version of Spark's statistics: " + e, e);
    }
  }

  public Statistics computeStats() {
    return stats();
  }

  @Override
  public String nodeName() {
    return "Deltalog " + statement.nodeName();
  }

  /** Returns the number of parameters of the constructor, which Spark needs to copy the node. */
  @Override
  public int productArity() {
    return 2;
  }

  @Override
  public Object productElement(int index) {
    return index == 0 ? (Object) statement : (Object) output;
  }

  @Override
  public boolean canEqual(Object other) {
    return other == this;
  }
}
