package io.deltalog.spark;

import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.plans.QueryPlan;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;

/**
 * Finds the versions of tables that a DataFrame reads, and which of their rows matter to it. Uses
 * the analyzed plan, including subqueries, common table expressions and views. The optimized plan
 * is not suitable, because answers from the log and cached data may have replaced relations in it.
 *
 * <p>Versions that the query requests explicitly, for example by VERSION AS OF, are left out,
 * because the user has requested old rows.
 */
public class SourceVersions {
  private static final List<String> TIME_TRAVEL =
      List.of("versionasof", "timestampasof", "timestampasofmicros");

  private static final List<Expression> NO_FILTERS = Collections.emptyList();

  private final Set<List<String>> found = new LinkedHashSet<>();

  private SourceVersions() {}

  /**
   * Returns, for each DeltalogFileIndex in the plan, a list of the planner's key and the SQL
   * condition that the relevant rows meet (`ReadFilters.java`).
   */
  public static List<List<String>> of(TreeNode<?> plan) {
    SourceVersions sources = new SourceVersions();
    sources.collect(plan, NO_FILTERS);
    return new ArrayList<>(sources.found);
  }

  /** Returns the result of `of` as JSON. */
  public static String json(TreeNode<?> plan) {
    return Json.text(of(plan));
  }

  private void collect(TreeNode<?> node, List<Expression> filters) {
    if (node instanceof LogicalRelation logicalRelation
        && logicalRelation.relation() instanceof HadoopFsRelation relation) {
      add(relation, logicalRelation, filters);
    }
    if (node instanceof DataSourceV2Relation dataSourceV2Relation) {
      addTable(dataSourceV2Relation, dataSourceV2Relation, filters);
    }
    if (node instanceof DataSourceV2ScanRelation dataSourceV2ScanRelation) {
      addTable(dataSourceV2ScanRelation.relation(), dataSourceV2ScanRelation, filters);
    }
    scala.collection.Iterator<? extends TreeNode<?>> children = node.children().iterator();
    for (int i = 0; children.hasNext(); i++) {
      collect(
          children.next(),
          node instanceof LogicalPlan plan ? ReadFilters.below(plan, i, filters) : NO_FILTERS);
    }
    collectAll(node.innerChildren());
    if (node instanceof QueryPlan<?> queryPlan) {
      collectAll(queryPlan.subqueries());
    }
  }

  private void addTable(DataSourceV2Relation source, LogicalPlan node, List<Expression> filters) {
    if (source.table() instanceof DeltalogTable table) {
      add(table.relation(), node, filters);
    }
  }

  private void add(HadoopFsRelation relation, LogicalPlan node, List<Expression> filters) {
    if (relation.location() instanceof DeltalogFileIndex files && !travels(relation)) {
      String planner = files.planner();
      found.add(List.of(planner, ReadFilters.text(node, filters)));
    }
  }

  private void collectAll(scala.collection.Iterable<?> nodes) {
    for (Object node : Plans.each(nodes)) {
      if (node instanceof TreeNode<?> treeNode) {
        collect(treeNode, NO_FILTERS);
      }
    }
  }

  private static boolean travels(HadoopFsRelation relation) {
    scala.collection.Iterator<String> names = relation.options().keysIterator();
    while (names.hasNext()) {
      if (TIME_TRAVEL.contains(names.next().toLowerCase(Locale.ROOT))) {
        return true;
      }
    }
    return false;
  }
}
