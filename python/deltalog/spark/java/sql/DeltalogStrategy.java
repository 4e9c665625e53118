package io.deltalog.spark;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.catalyst.TableIdentifier;
import org.apache.spark.sql.catalyst.analysis.NoSuchNamespaceException;
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
import org.apache.spark.sql.catalyst.catalog.CatalogTable;
import org.apache.spark.sql.catalyst.catalog.SessionCatalog;
import org.apache.spark.sql.catalyst.plans.logical.*;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.SparkStrategy;
import org.apache.spark.sql.execution.command.*;
import org.apache.spark.sql.execution.datasources.InsertIntoHadoopFsRelationCommand;
import org.apache.spark.sql.execution.datasources.LogicalRelation;

/**
 * A strategy that plans statements on deltalog tables before Spark's own strategies. It creates tables, and
 * refuses statements that would change a table's directory or its catalog entry without a commit. Scans are
 * planned by Spark, with a file index that knows their filters.
 */
public class DeltalogStrategy extends SparkStrategy {
  public scala.collection.immutable.Seq apply(LogicalPlan plan) {
    String operation = operation(plan);
    if (operation == null) {
      return ScanPlan.of(plan);
    }
    List planned = new ArrayList();
    planned.add(new DeltalogCommandExec(operation, plan));
    return scala.jdk.javaapi.CollectionConverters.asScala(planned).toSeq();
  }

  private static String operation(LogicalPlan plan) {
    if (plan instanceof CreateDataSourceTableCommand) {
      return TableDefinition.isOurs(((CreateDataSourceTableCommand) plan).table()) ? "create" : null;
    }
    if (plan instanceof CreateDataSourceTableAsSelectCommand) {
      CatalogTable table = ((CreateDataSourceTableAsSelectCommand) plan).table();
      return TableDefinition.isOurs(table) ? "createAsSelect" : null;
    }
    if (plan instanceof InsertIntoHadoopFsRelationCommand) {
      scala.Option index = ((InsertIntoHadoopFsRelationCommand) plan).fileIndex();
      return index.isDefined() && index.get() instanceof DeltalogFileIndex ? "refuseStatement" : null;
    }
    if (plan instanceof DeleteFromTable || plan instanceof UpdateTable || plan instanceof MergeIntoTable) {
      return readsOurs((LogicalPlan) plan.children().head()) ? "refuseStatement" : null;
    }
    if (plan instanceof RunnableCommand && changesTable(plan.getClass().getSimpleName()) && namesOurs(plan)) {
      return "refuseStatement";
    }
    return null;
  }

  private static boolean changesTable(String command) {
    return command.startsWith("AlterTable") && !command.equals("AlterTableRenameCommand")
        || command.startsWith("Truncate") || command.startsWith("RepairTable")
        || command.startsWith("LoadData") || command.startsWith("CreateTableLike");
  }

  private static boolean readsOurs(LogicalPlan target) {
    if (target instanceof LogicalRelation) {
      Object relation = ((LogicalRelation) target).relation();
      return relation instanceof DeltalogRelation || relation instanceof WriteTarget;
    }
    scala.collection.Iterator children = target.children().iterator();
    while (children.hasNext()) {
      if (readsOurs((LogicalPlan) children.next())) {
        return true;
      }
    }
    return false;
  }

  private static boolean namesOurs(LogicalPlan command) {
    SessionCatalog catalog = ((SparkSession) org.apache.spark.sql.SparkSession.active()).sessionState().catalog();
    for (int i = 0; i < command.productArity(); i++) {
      Object field = command.productElement(i);
      if (field instanceof TableIdentifier && known(catalog, (TableIdentifier) field)) {
        return true;
      }
      if (field instanceof CatalogTable && TableDefinition.isOurs((CatalogTable) field)) {
        return true;
      }
    }
    return false;
  }

  private static boolean known(SessionCatalog catalog, TableIdentifier name) {
    try {
      return !catalog.isTempView(name) && catalog.tableExists(name)
          && TableDefinition.isOurs(catalog.getTableMetadata(name));
    } catch (NoSuchNamespaceException e) {
      return false; // Spark's own command has the better error message.
    } catch (NoSuchTableException e) {
      return false;
    }
  }
}
