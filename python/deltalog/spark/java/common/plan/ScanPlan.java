package io.deltalog.spark;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.PlanExpression;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.execution.FileSourceScanExec;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.datasources.FileFormat;
import org.apache.spark.sql.execution.datasources.FileIndex;
import org.apache.spark.sql.execution.datasources.FileSourceStrategy$;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import scala.collection.Iterator;
import scala.collection.immutable.Seq;

/**
 * Spark's plan for scanning a deltalog table, with a file index that lists files by the scan's
 * filters.
 */
public class ScanPlan extends NodeChange<SparkPlan> {

  /**
   * Returns the plans for a query that reads exactly one deltalog table; for other queries, returns
   * no plans.
   */
  public static Seq<SparkPlan> of(LogicalPlan plan) {
    List<SparkPlan> planned = new ArrayList<>();
    if (readsOurs(plan)) {
      LogicalPlan overFiles = plan.transform(new FileRelation());
      if (PortableScan.isNeeded(overFiles)) {
        return PortableScan.of(overFiles);
      }
      Iterator<SparkPlan> plans = plans(plan);
      while (plans.hasNext()) {
        planned.add(MetadataFields.direct(plans.next()).transform(new ScanPlan()));
      }
    }
    return Plans.seq(planned);
  }

  /**
   * Returns the size in bytes of the files that a query reads from the one deltalog table in it; -1
   * if the size is not known. The files are listed for this, and the scan later uses this listing.
   */
  static long size(LogicalPlan plan) {
    if (!readsOurs(plan)) {
      return -1;
    }
    Iterator<SparkPlan> plans = plans(plan);
    while (plans.hasNext()) {
      for (Object leaf : Plans.each(plans.next().collectLeaves())) {
        if (leaf instanceof FileSourceScanExec fileSourceScanExec
            && location(fileSourceScanExec) instanceof DeltalogFileIndex) {
          Listings.Listing known = listing(fileSourceScanExec);
          return known == null ? -1 : known.size;
        }
      }
    }
    return -1;
  }

  /** Returns Spark's own plans, which read from a DeltalogFileIndex. */
  private static Iterator<SparkPlan> plans(LogicalPlan plan) {
    return FileSourceStrategy$.MODULE$.apply(plan.transform(new FileRelation())).iterator();
  }

  private static FileIndex location(FileSourceScanExec scan) {
    return scan.relation().location();
  }

  private static boolean readsOurs(LogicalPlan plan) {
    LogicalPlan source = plan;
    while (source instanceof Project || source instanceof Filter) {
      source = source.children().head();
    }
    return FileRelation.isScan(source)
        || (source instanceof LogicalRelation relation
            && relation.relation() instanceof DeltalogRelation);
  }

  @Override
  public boolean isDefinedAt(SparkPlan node) {
    return node instanceof FileSourceScanExec fileSourceScanExec
        && location(fileSourceScanExec) instanceof DeltalogFileIndex;
  }

  @Override
  protected SparkPlan changed(SparkPlan node) {
    FileSourceScanExec scan = (FileSourceScanExec) node;
    HadoopFsRelation relation = scan.relation();
    DeltalogFileIndex table = (DeltalogFileIndex) relation.location();
    FileFormat format = relation.fileFormat();
    boolean onlyOmitsRows = format instanceof SnapshotFormat snapshot && snapshot.onlyOmitsRows();
    Listings.Listing known = listing(scan);
    boolean isPlain = onlyOmitsRows && known != null && !known.hasVectors;
    if (isPlain) {
      format = ((SnapshotFormat) format).withAllRows();
    }
    if (format instanceof SnapshotFormat snapshot) {
      format = snapshot.selecting(scan.dataFilters());
    }
    FileIndex index =
        new ScanFileIndex(table, known == null ? "files unknown" : known.counts, isPlain);
    Object ofScan =
        relation.copy(
            index,
            relation.partitionSchema(),
            relation.dataSchema(),
            relation.bucketSpec(),
            format,
            relation.options(),
            relation.sparkSession());
    try {
      return (SparkPlan) CaseClass.with(scan, Collections.singletonMap("relation", ofScan));
    } catch (Exception e) {
      throw new IllegalStateException("deltalog cannot use this version of Spark's scan: " + e, e);
    }
  }

  /**
   * Lists the files of the scan; returns null if that fails, because the scan itself reports the
   * error.
   */
  private static Listings.Listing listing(FileSourceScanExec scan) {
    try {
      return ((DeltalogFileIndex) location(scan))
          .known(known(scan.partitionFilters()), known(scan.dataFilters()));
    } catch (DeltalogException e) {
      return null;
    }
  }

  /**
   * Returns the filters that Spark uses for listing files. Filters with subqueries are left out,
   * because the results of subqueries are not known at that time.
   */
  static Seq<Expression> known(Seq<Expression> filters) {
    List<Expression> known = new ArrayList<>();
    for (Expression filter : Plans.each(filters)) {
      if (!hasSubquery(filter)) {
        known.add(filter);
      }
    }
    return Plans.seq(known);
  }

  private static boolean hasSubquery(Expression expression) {
    if (expression instanceof PlanExpression) {
      return true;
    }
    for (Expression child : Plans.each(expression.children())) {
      if (hasSubquery(child)) {
        return true;
      }
    }
    return false;
  }
}
