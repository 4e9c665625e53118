package io.deltalog.spark;

import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.execution.LogicalRDD;
import org.apache.spark.sql.execution.QueryExecution;
import org.apache.spark.sql.execution.SQLExecution$;
import org.apache.spark.storage.RDDInfo;
import scala.Option;
import scala.runtime.AbstractFunction0;

/**
 * Rows that are evaluated once and kept by the executors until they are released. Lost blocks fail
 * what reads them, instead of being computed again with perhaps other rows.
 */
public class KeptRows extends AbstractFunction0 {
  private final QueryExecution query;
  private final RDD rows;
  private final LogicalPlan plan;

  public KeptRows(Dataset given) {
    // Evaluated at once, what a failed evaluation has kept could not be released.
    LogicalPlan analyzed = Plans.withoutConstraints(given.queryExecution().analyzed());
    query = Dataset.ofRows(given.sparkSession(), analyzed).localCheckpoint(false).queryExecution();
    plan = query.analyzed();
    rows = ((LogicalRDD) plan).rdd();
  }

  /** Returns the id of the RDD of the rows. */
  public int id() {
    return rows.id();
  }

  /** Returns a plan that reads the rows. Its columns have the ids of those that were given. */
  public LogicalPlan plan() {
    return plan;
  }

  /** Evaluates the rows. To be called before they are read. */
  public void evaluate() {
    SQLExecution$.MODULE$.withNewExecutionId(query, Option.apply("localCheckpoint"), this);
  }

  @Override
  public Object apply() {
    return rows.count();
  }

  /** Returns how many bytes the rows take where they are kept; -1 if that is not known. */
  public long bytes() {
    for (RDDInfo stored : rows.sparkContext().getRDDStorageInfo()) {
      if (stored.id() == rows.id()) {
        return stored.memSize() + stored.diskSize();
      }
    }
    return -1;
  }

  /** Lets the executors forget the rows, which cannot be read any more. */
  public void release() {
    if (!rows.sparkContext().isStopped()) { // There are no executors then.
      rows.unpersist(false);
    }
  }
}
