package io.deltalog.spark;

import java.util.HashMap;
import org.apache.spark.sql.catalyst.analysis.NamedRelation;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.OverwritePartitionsDynamic;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import scala.collection.immutable.Map;

/**
 * Records which versions of tables the rows of a dynamic overwrite are read from. For other writes,
 * Spark keeps the analyzed query. For a dynamic overwrite, deltalog would get only the optimized
 * query, in which cached data and values from the log may already have replaced tables.
 */
public class DynamicOverwrites extends Rule<LogicalPlan> {
  /** The write's option for the keys of planners and the filters of their rows, as JSON. */
  public static final String SOURCES = "deltalog.sources";

  @Override
  public LogicalPlan apply(LogicalPlan plan) {
    if (!(plan instanceof OverwritePartitionsDynamic overwrite) || !plan.resolved()) {
      return plan;
    }

    NamedRelation target = overwrite.table();
    Map<String, String> options = overwrite.writeOptions();
    if (!((Object) target instanceof DataSourceV2Relation relation)
        || !(relation.table() instanceof DeltalogTable)
        || options.contains(SOURCES)) {
      return plan;
    }
    String sources = SourceVersions.json(overwrite.query());
    java.util.Map<String, Object> changes = new HashMap<>();
    changes.put("writeOptions", options.updated(SOURCES, sources));
    if (!relation.options().isEmpty()) {
      // Spark requires the options of the table to equal the options of the write.
      java.util.Map<String, String> all = new HashMap<>(relation.options().asCaseSensitiveMap());
      all.put(SOURCES, sources);
      Object noted = new CaseInsensitiveStringMap(all);
      changes.put("table", EvolvingWrites.with(relation, java.util.Map.of("options", noted)));
    }
    return EvolvingWrites.with(plan, changes);
  }
}
