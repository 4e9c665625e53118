package io.deltalog.spark;

import java.lang.reflect.Method;
import java.util.LinkedHashSet;
import java.util.Set;
import org.apache.spark.sql.catalyst.plans.QueryPlan;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.CacheManager;
import org.apache.spark.sql.execution.CachedData;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import scala.collection.Iterator;

/**
 * Refreshes tables whose rows Spark has cached. Since Spark 4.1, a query that names a cached table
 * reads these rows, even after later writes, until Spark recomputes them.
 *
 * <p>DataFrames that were read by a path are not affected, because they always read the same
 * version.
 */
public class CachedTables {
  private CachedTables() {}

  /**
   * Makes Spark recompute the cached rows of a table, under all names that the table has in the
   * cache.
   *
   * @param uri the URL of the table, with the core's name of the store
   */
  public static void refresh(SparkSession session, String uri) {
    refreshPath(session, Locations.path(session, uri));
  }

  /** Makes Spark recompute the cached rows of the table at a path. */
  static void refreshPath(SparkSession session, String path) {
    CacheManager cache = session.sharedState().cacheManager();
    if (cache.isEmpty()) {
      return;
    }
    Set<String> names = new LinkedHashSet<>();
    Iterator<CachedData> all = kept(cache);
    while (all.hasNext()) {
      addNames(all.next().plan(), path, names);
    }
    for (String name : names) {
      // The table may have been renamed or dropped since.
      if (session.catalog().tableExists(name)) {
        session.catalog().refreshTable(name);
      }
    }
  }

  private static Iterator<CachedData> kept(CacheManager cache) {
    try {
      Method kept = CacheManager.class.getDeclaredMethod("cachedData");
      kept.setAccessible(true);
      return Unchecked.<scala.collection.Iterable<CachedData>>cast(kept.invoke(cache)).iterator();
    } catch (ReflectiveOperationException e) {
      throw new IllegalStateException(
          "deltalog cannot use the cached tables of this version of Spark: " + e, e);
    }
  }

  private static void addNames(TreeNode<?> node, String path, Set<String> names) {
    if (node instanceof DataSourceV2Relation relation
        && relation.identifier().isDefined()
        && relation.table() instanceof DeltalogTable table
        && table.path().equals(path)) {
      names.add(relation.name());
    }
    if (node instanceof LogicalRelation relation
        && relation.catalogTable().isDefined()
        && relation.relation() instanceof DeltalogRelation rows
        && ((DeltalogFileIndex) rows.location()).path().equals(path)) {
      names.add(relation.catalogTable().get().identifier().quotedString());
    }
    addAll(node.children().iterator(), path, names);
    addAll(node.innerChildren().iterator(), path, names);
    if (node instanceof QueryPlan<?> plan) {
      addAll(plan.subqueries().iterator(), path, names);
    }
  }

  private static void addAll(
      Iterator<? extends TreeNode<?>> nodes, String path, Set<String> names) {
    while (nodes.hasNext()) {
      addNames(nodes.next(), path, names);
    }
  }
}
