package io.deltalog.spark;

import java.util.Map;
import java.util.TreeMap;
import org.apache.spark.sql.catalyst.analysis.UnresolvedRelation;
import org.apache.spark.sql.catalyst.plans.logical.InsertIntoStatement;
import org.apache.spark.sql.catalyst.plans.logical.V2WriteCommand;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import org.apache.spark.sql.internal.SQLConf;
import scala.Product;

/** Decides whether a write or a statement adds new columns of its rows to the table. */
public class SchemaEvolution {
  /** The JVM connector's setting that lets writes add columns. */
  private static final String AUTO_MERGE = "spark.databricks.delta.schema.autoMerge.enabled";

  /** The option of a write, which takes precedence over the setting. */
  static final String OPTION = "mergeSchema";

  private SchemaEvolution() {}

  /** Returns whether the setting of the session lets writes add columns. */
  static boolean isOfSession() {
    return SQLConf.get().getConfString(AUTO_MERGE, "false").trim().equalsIgnoreCase("true");
  }

  /**
   * Returns whether a write adds columns, because its statement, its options or the session request
   * it.
   */
  static boolean isAsked(TreeNode<?> write) {
    if (isStated(write)) {
      return true;
    }
    String option = options(write).get(OPTION);
    return option == null ? isOfSession() : option.trim().equalsIgnoreCase("true");
  }

  /**
   * Returns whether the statement itself requests new columns, which is possible since Spark 4.2.
   */
  static boolean isStated(TreeNode<?> write) {
    return Boolean.TRUE.equals(CaseClass.field((Product) write, "withSchemaEvolution"));
  }

  /** Returns the options, in a map that ignores the case of their names. */
  private static Map<String, String> options(TreeNode<?> write) {
    Map<String, String> all = new TreeMap<>(String.CASE_INSENSITIVE_ORDER);
    Object table;
    if (write instanceof InsertIntoStatement insert) {
      table = insert.table();
    } else {
      V2WriteCommand command = (V2WriteCommand) write;
      table = command.table();
      all.putAll(
          scala.jdk.javaapi.CollectionConverters.asJava(
              Unchecked.<scala.collection.Map<String, String>>cast(
                  CaseClass.field((Product) write, "writeOptions"))));
    }
    if (table instanceof DataSourceV2Relation relation) {
      all.putAll(relation.options().asCaseSensitiveMap());
    } else if (table instanceof UnresolvedRelation relation) {
      all.putAll(relation.options().asCaseSensitiveMap());
    }
    return all;
  }
}
