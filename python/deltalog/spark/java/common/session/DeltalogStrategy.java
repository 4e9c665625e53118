package io.deltalog.spark;

import java.util.List;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.SaveMode;
import org.apache.spark.sql.catalyst.TableIdentifier;
import org.apache.spark.sql.catalyst.analysis.NoSuchNamespaceException;
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
import org.apache.spark.sql.catalyst.analysis.ResolvedIdentifier;
import org.apache.spark.sql.catalyst.catalog.CatalogTable;
import org.apache.spark.sql.catalyst.catalog.SessionCatalog;
import org.apache.spark.sql.catalyst.plans.logical.*;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.SparkStrategy;
import org.apache.spark.sql.execution.command.*;
import org.apache.spark.sql.execution.datasources.FileIndex;
import org.apache.spark.sql.execution.datasources.InsertIntoHadoopFsRelationCommand;

/**
 * A strategy that plans statements on deltalog tables before Spark's own strategies. It carries out
 * writes, and refuses statements that would change a table's directory or its catalog entry without
 * a commit. Spark itself plans scans, with a file index that receives their filters.
 */
public class DeltalogStrategy extends SparkStrategy {
  @Override
  public scala.collection.immutable.Seq<SparkPlan> apply(LogicalPlan plan) {
    if (!FeatureGroup.WRITE.isLost() && DeltalogWriteExec.isWrite(plan)) {
      return only(new DeltalogWriteExec(plan));
    }
    if (plan instanceof StatementCommand statementCommand) {
      return only(new StatementExec(statementCommand));
    }
    if (isRefused(plan)) {
      return only(new RefusedStatementExec(plan));
    }
    Path directory = TableDirectory.target(plan, session());
    Path table = directory == null ? null : TableDirectory.tableOf(directory, plan, session());
    return table == null ? ScanPlan.of(plan) : only(new RefusedWriteExec(plan, directory, table));
  }

  private static SparkSession session() {
    return (SparkSession) org.apache.spark.sql.SparkSession.active();
  }

  private static scala.collection.immutable.Seq<SparkPlan> only(SparkPlan planned) {
    return Plans.seq(List.of(planned));
  }

  private static boolean isRefused(LogicalPlan plan) {
    CatalogTable defined = defined(plan);
    if (defined != null) {
      return CatalogEntries.isEntry(defined)
          || (changesExisting(plan)
              && known(session().sessionState().catalog(), defined.identifier()));
    }
    if (plan instanceof V2CreateTablePlan v2CreateTablePlan
        && isOutsideOurCatalog(v2CreateTablePlan)) {
      return true;
    }
    if (plan instanceof InsertIntoHadoopFsRelationCommand insertIntoHadoopFsRelationCommand) {
      scala.Option<FileIndex> index = insertIntoHadoopFsRelationCommand.fileIndex();
      return index.isDefined() && index.get() instanceof DeltalogFileIndex;
    }
    if (StatementTarget.isStatement(plan)) {
      // In this session, the analyzer lacks deltalog's rule that turns the statement into a
      // command.
      return true;
    }
    return plan instanceof RunnableCommand
        && changesTable(plan.getClass().getSimpleName())
        && namesOurs(plan);
  }

  /** Returns the table that CREATE TABLE AS or saveAsTable defines in Spark's own way, or null. */
  static CatalogTable defined(LogicalPlan plan) {
    // Spark may lack the class for Hive.
    boolean defines =
        plan instanceof CreateDataSourceTableAsSelectCommand
            || plan.getClass().getSimpleName().equals("CreateHiveTableAsSelectCommand");
    return defines ? (CatalogTable) plan.productElement(0) : null;
  }

  /**
   * Returns whether a statement that defines a table would replace an existing table, or add to it.
   */
  private static boolean changesExisting(LogicalPlan plan) {
    for (int i = 0; i < plan.productArity(); i++) {
      if (plan.productElement(i) == SaveMode.Overwrite
          || plan.productElement(i) == SaveMode.Append) {
        return true;
      }
    }
    return false;
  }

  /**
   * Returns whether the statement creates a deltalog table in a catalog that does not support the
   * log.
   */
  private static boolean isOutsideOurCatalog(V2CreateTablePlan plan) {
    scala.Option<String> provider = specification(plan).provider();
    LogicalPlan name = plan.name();
    return provider.isDefined()
        && CatalogEntries.isOurs(provider.get())
        && name instanceof ResolvedIdentifier resolvedIdentifier
        && !(resolvedIdentifier.catalog() instanceof BaseCatalog);
  }

  static TableSpecBase specification(V2CreateTablePlan plan) {
    if (plan instanceof CreateTable createTable) {
      return createTable.tableSpec();
    }
    if (plan instanceof ReplaceTable replaceTable) {
      return replaceTable.tableSpec();
    }
    if (plan instanceof CreateTableAsSelect createTableAsSelect) {
      return createTableAsSelect.tableSpec();
    }
    return ((ReplaceTableAsSelect) plan).tableSpec();
  }

  private static boolean changesTable(String command) {
    return (command.startsWith("AlterTable") && !command.equals("AlterTableRenameCommand"))
        || command.startsWith("Truncate")
        || command.startsWith("RepairTable")
        || command.startsWith("LoadData")
        || command.startsWith("CreateTableLike");
  }

  private static boolean namesOurs(LogicalPlan command) {
    SessionCatalog catalog = session().sessionState().catalog();
    for (int i = 0; i < command.productArity(); i++) {
      Object field = command.productElement(i);
      if (field instanceof TableIdentifier tableIdentifier && known(catalog, tableIdentifier)) {
        return true;
      }
      if (field instanceof CatalogTable catalogTable && CatalogEntries.isEntry(catalogTable)) {
        return true;
      }
      if (field instanceof scala.Some<?> some
          && some.value() instanceof String name
          && CatalogEntries.isOurs(name)) {
        return true; // CREATE TABLE … LIKE … USING deltalog would create an entry without a log.
      }
    }
    return false;
  }

  private static boolean known(SessionCatalog catalog, TableIdentifier name) {
    try {
      return !catalog.isTempView(name)
          && catalog.tableExists(name)
          && CatalogEntries.isEntry(catalog.getTableMetadata(name));
    } catch (NoSuchNamespaceException | NoSuchTableException e) {
      return false; // Spark's own command has the better error message.
    }
  }
}
