package io.deltalog.spark;

import org.apache.spark.sql.catalyst.plans.logical.MergeIntoTable;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.internal.SQLConf;

/**
 * Hides the clauses of a MERGE that may add columns (EvolvingMerge), before Spark's analyzer
 * resolves anything: MERGE WITH SCHEMA EVOLUTION, or any MERGE where the session says so.
 */
public class EvolvingMerges extends Rule {
  /** The setting of the JVM connector, by which its writes add columns. */
  static final String AUTO_MERGE = "spark.databricks.delta.schema.autoMerge.enabled";

  @Override
  public TreeNode apply(TreeNode plan) {
    if (!(plan instanceof MergeIntoTable merge)) {
      return plan;
    }

    boolean evolves =
        merge.withSchemaEvolution()
            || SQLConf.get().getConfString(AUTO_MERGE, "false").trim().equalsIgnoreCase("true");
    if (!evolves || EvolvedTarget.in(merge.targetTable()) != null) {
      return plan;
    }
    return new EvolvingMerge(merge.targetTable(), merge.sourceTable(), merge);
  }
}
