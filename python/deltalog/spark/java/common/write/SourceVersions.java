package io.deltalog.spark;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import org.apache.spark.sql.catalyst.plans.QueryPlan;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;

/**
 * The versions of tables that a DataFrame reads, and which rows of them, found in its analyzed
 * plan, including subqueries, common table expressions and views. The optimized plan is not
 * suitable, because answers from the log and cached data may have replaced relations in it.
 *
 * <p>Versions that the query requests explicitly, for example by VERSION AS OF, are left out,
 * because their rows are meant to be old.
 */
public class SourceVersions {
  private static final List TIME_TRAVEL =
      Arrays.asList(new String[] {"versionasof", "timestampasof", "timestampasofmicros"});

  private static final List NO_FILTERS = Collections.emptyList();

  private final Set found = new LinkedHashSet();

  private SourceVersions() {}

  /**
   * Returns for each DeltalogFileIndex in the plan the planner's key and the text of the conditions
   * that the rows which matter meet (`ReadFilters.java`), as a list of two.
   */
  public static List of(TreeNode plan) {
    SourceVersions sources = new SourceVersions();
    sources.collect(plan, NO_FILTERS);
    return new ArrayList(sources.found);
  }

  /** Returns the same as JSON. */
  public static String json(TreeNode plan) {
    return Json.text(of(plan));
  }

  private void collect(TreeNode node, List filters) {
    if (node instanceof LogicalRelation logicalRelation
        && logicalRelation.relation() instanceof HadoopFsRelation) {
      add((HadoopFsRelation) logicalRelation.relation(), (LogicalPlan) node, filters);
    }
    if (node instanceof DataSourceV2Relation dataSourceV2Relation) {
      addTable(dataSourceV2Relation, (LogicalPlan) node, filters);
    }
    if (node instanceof DataSourceV2ScanRelation dataSourceV2ScanRelation) {
      addTable(dataSourceV2ScanRelation.relation(), (LogicalPlan) node, filters);
    }
    scala.collection.Iterator children = node.children().iterator();
    for (int i = 0; children.hasNext(); i++) {
      boolean isPlan = node instanceof LogicalPlan;
      collect(
          (TreeNode) children.next(),
          isPlan ? ReadFilters.below((LogicalPlan) node, i, filters) : NO_FILTERS);
    }
    collectAll(node.innerChildren());
    if (node instanceof QueryPlan<?> queryPlan) {
      collectAll(queryPlan.subqueries());
    }
  }

  private void addTable(DataSourceV2Relation source, LogicalPlan node, List filters) {
    if (source.table() instanceof DeltalogTable) {
      add(((DeltalogTable) source.table()).relation(), node, filters);
    }
  }

  private void add(HadoopFsRelation relation, LogicalPlan node, List filters) {
    if (relation.location() instanceof DeltalogFileIndex && !travels(relation)) {
      String planner = ((DeltalogFileIndex) relation.location()).planner();
      found.add(Arrays.asList(new String[] {planner, ReadFilters.text(node, filters)}));
    }
  }

  private void collectAll(scala.collection.Iterable nodes) {
    scala.collection.Iterator each = nodes.iterator();
    while (each.hasNext()) {
      Object node = each.next();
      if (node instanceof TreeNode<?> treeNode) {
        collect(treeNode, NO_FILTERS);
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
