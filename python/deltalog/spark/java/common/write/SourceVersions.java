package io.deltalog.spark;

import java.util.Arrays;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import org.apache.spark.sql.catalyst.plans.QueryPlan;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;

/**
 * The versions of tables that a DataFrame reads, found in its analyzed plan, including subqueries, common table
 * expressions and views. The optimized plan is not suitable, because answers from the log and cached data may
 * have replaced relations in it.
 *
 * Versions that the query requests explicitly, for example by VERSION AS OF, are left out, because their rows
 * are meant to be old.
 */
public class SourceVersions {
  private static final List TIME_TRAVEL =
      Arrays.asList(new String[] {"versionasof", "timestampasof", "timestampasofmicros"});

  /** Returns the planner's key of each DeltalogFileIndex in the plan. */
  public static String[] of(TreeNode plan) {
    Set found = new LinkedHashSet();
    collect(plan, found);
    return (String[]) found.toArray(new String[0]);
  }

  /** Returns the same as JSON. */
  public static String json(TreeNode plan) {
    return Json.text(of(plan));
  }

  private static void collect(TreeNode node, Set found) {
    if (node instanceof LogicalRelation && ((LogicalRelation) node).relation() instanceof HadoopFsRelation) {
      collectRelation((HadoopFsRelation) ((LogicalRelation) node).relation(), found);
    }
    if (node instanceof DataSourceV2Relation) {
      collectTable((DataSourceV2Relation) node, found);
    }
    if (node instanceof DataSourceV2ScanRelation) {
      collectTable(((DataSourceV2ScanRelation) node).relation(), found);
    }
    collectAll(node.children(), found);
    collectAll(node.innerChildren(), found);
    if (node instanceof QueryPlan) {
      collectAll(((QueryPlan) node).subqueries(), found);
    }
  }

  private static void collectTable(DataSourceV2Relation source, Set found) {
    if (source.table() instanceof DeltalogTable) {
      collectRelation(((DeltalogTable) source.table()).relation(), found);
    }
  }

  private static void collectRelation(HadoopFsRelation relation, Set found) {
    if (relation.location() instanceof DeltalogFileIndex && !travels(relation)) {
      found.add(((DeltalogFileIndex) relation.location()).planner());
    }
  }

  private static void collectAll(scala.collection.Iterable nodes, Set found) {
    scala.collection.Iterator each = nodes.iterator();
    while (each.hasNext()) {
      Object node = each.next();
      if (node instanceof TreeNode) {
        collect((TreeNode) node, found);
      }
    }
  }

  private static boolean travels(HadoopFsRelation relation) {
    scala.collection.Iterator names = relation.options().keysIterator();
    while (names.hasNext()) {
      if (TIME_TRAVEL.contains(((String) names.next()).toLowerCase(Locale.ROOT))) {
        return true;
      }
    }
    return false;
  }
}
