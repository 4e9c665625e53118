package io.deltalog.spark;

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.TableSpec;
import org.apache.spark.sql.catalyst.plans.logical.TableSpecBase;
import org.apache.spark.sql.catalyst.plans.logical.V2CreateTablePlan;
import org.apache.spark.sql.catalyst.rules.Rule;

/**
 * Refuses table options that may be secrets, already during the analysis of a statement. Spark
 * shows the plans of running statements with the values of all options, except options whose names
 * it knows to be secret.
 */
public class TableSecrets extends Rule<LogicalPlan> {
  @Override
  public LogicalPlan apply(LogicalPlan plan) {
    if (plan instanceof V2CreateTablePlan v2CreateTablePlan) {
      TableSpecBase defined = DeltalogStrategy.specification(v2CreateTablePlan);
      scala.Option<String> provider = defined.provider();
      if (defined instanceof TableSpec tableSpec
          && provider.isDefined()
          && CatalogEntries.isOurs(provider.get())) {
        scala.collection.immutable.Map<String, String> options = tableSpec.options();
        if (!options.isEmpty()) {
          Bridge.definitions()
              .checkOptions(Json.text(scala.jdk.javaapi.CollectionConverters.asJava(options)));
        }
      }
    }
    return plan;
  }
}
