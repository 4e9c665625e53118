package io.deltalog.spark;

import java.util.List;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.MergeIntoTable;
import scala.collection.immutable.IndexedSeq;
import scala.collection.immutable.Seq;

/**
 * A placeholder for a MERGE while Spark's analyzer resolves its two tables. It is used if the MERGE
 * may add columns, refers to many columns, or has variables. It hides the clauses from the
 * analyzer, which would otherwise look for columns only among the current columns of the table,
 * search all columns for each name, and mistake variables for columns. MergeEvolution later
 * replaces it with a MERGE.
 */
public class EvolvingMerge extends LogicalPlan {
  private final LogicalPlan target;
  private final LogicalPlan source;
  private final MergeIntoTable statement;

  public EvolvingMerge(LogicalPlan target, LogicalPlan source, MergeIntoTable statement) {
    this.target = target;
    this.source = source;
    this.statement = statement;
  }

  public LogicalPlan target() {
    return target;
  }

  public LogicalPlan source() {
    return source;
  }

  /** Returns the statement as it was written, with unresolved tables. */
  public MergeIntoTable statement() {
    return statement;
  }

  @Override
  public Seq<Attribute> output() {
    return Plans.none();
  }

  @Override
  public Seq<LogicalPlan> children() {
    return Plans.seq(List.of(target, source));
  }

  @Override
  public LogicalPlan withNewChildrenInternal(IndexedSeq<LogicalPlan> children) {
    return new EvolvingMerge(children.apply(0), children.apply(1), statement);
  }

  /** Returns the number of parameters of the constructor, which Spark needs to copy the node. */
  @Override
  public int productArity() {
    return 3;
  }

  @Override
  public Object productElement(int index) {
    return index == 0 ? (Object) target : index == 1 ? (Object) source : (Object) statement;
  }

  @Override
  public boolean canEqual(Object other) {
    return other instanceof EvolvingMerge;
  }
}
