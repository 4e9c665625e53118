package io.deltalog.spark;

import java.util.Collections;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import scala.collection.immutable.IndexedSeq;
import scala.collection.immutable.Seq;

/**
 * A node above the rows of a write whose table Spark has not found yet. It is never resolved, so
 * that Spark's analyzer does not compare the rows with the table. EvolvingWrites removes it.
 */
public class EvolvingRows extends LogicalPlan {
  private final LogicalPlan child;

  public EvolvingRows(LogicalPlan child) {
    this.child = child;
  }

  public LogicalPlan child() {
    return child;
  }

  @Override
  public boolean resolved() {
    return false;
  }

  @Override
  public Seq<Attribute> output() {
    return child.output();
  }

  @Override
  public Seq<LogicalPlan> children() {
    return Plans.seq(Collections.singletonList(child));
  }

  @Override
  public LogicalPlan withNewChildrenInternal(IndexedSeq<LogicalPlan> children) {
    return new EvolvingRows(children.head());
  }

  /** Returns the number of parameters of the constructor, which Spark needs to copy the node. */
  @Override
  public int productArity() {
    return 1;
  }

  @Override
  public Object productElement(int index) {
    return child;
  }

  @Override
  public boolean canEqual(Object other) {
    return other instanceof EvolvingRows;
  }
}
