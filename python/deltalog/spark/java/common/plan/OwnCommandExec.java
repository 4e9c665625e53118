package io.deltalog.spark;

import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.datasources.v2.V2CommandExec;
import scala.collection.immutable.IndexedSeq;
import scala.collection.immutable.Seq;

/**
 * A statement that deltalog executes when the plan runs, but not when it is explained. It has no
 * children.
 */
public abstract class OwnCommandExec extends V2CommandExec {
  protected final LogicalPlan statement;

  protected OwnCommandExec(LogicalPlan statement) {
    this.statement = statement;
  }

  protected static <T> Seq<T> none() {
    return Plans.none();
  }

  @Override
  public Seq<Attribute> output() {
    return none();
  }

  @Override
  public Seq<SparkPlan> children() {
    return none();
  }

  @Override
  public SparkPlan withNewChildrenInternal(IndexedSeq<SparkPlan> children) {
    return this;
  }

  @Override
  public String nodeName() {
    return "Deltalog " + statement.nodeName();
  }

  @Override
  public int productArity() {
    return 1;
  }

  @Override
  public Object productElement(int index) {
    return statement;
  }

  @Override
  public boolean canEqual(Object other) {
    return other == this;
  }
}
