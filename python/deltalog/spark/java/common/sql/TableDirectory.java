package io.deltalog.spark;

import java.io.IOException;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.catalyst.TableIdentifier;
import org.apache.spark.sql.catalyst.analysis.NoSuchNamespaceException;
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
import org.apache.spark.sql.catalyst.catalog.CatalogStorageFormat;
import org.apache.spark.sql.catalyst.catalog.CatalogTable;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.command.LoadDataCommand;
import org.apache.spark.sql.execution.datasources.InsertIntoHadoopFsRelationCommand;

/**
 * Finds writes of Spark's own sources to a directory of a Delta table. Their files would not be
 * rows of the table, and an overwrite would delete the table's files and its log.
 */
public class TableDirectory {
  private static final String LOG = "_delta_log";
  private static final String CHANGES = "_change_data";
  private static final String SIDECARS = "_sidecars";

  /** The length of the names of the directories that `delta.randomizeFilePrefixes` creates. */
  private static final int PREFIX = 2;

  private TableDirectory() {}

  /**
   * Returns the directory to which a statement writes files, or null if it does not write files.
   */
  static Path target(LogicalPlan plan, SparkSession session) {
    if (plan instanceof InsertIntoHadoopFsRelationCommand insertIntoHadoopFsRelationCommand) {
      return insertIntoHadoopFsRelationCommand.outputPath();
    }
    if (plan instanceof LoadDataCommand loadDataCommand) {
      return place(loadDataCommand.table(), session);
    }
    // Spark may lack the classes for Hive: InsertIntoHiveDirCommand, InsertIntoHiveTable.
    if (!plan.getClass().getSimpleName().startsWith("InsertIntoHive")) {
      return null;
    }
    for (int i = 0; i < plan.productArity(); i++) {
      Object part = plan.productElement(i);
      if (part instanceof CatalogTable table) {
        part = table.storage();
      }
      if (part instanceof CatalogStorageFormat storage && storage.locationUri().isDefined()) {
        return new Path(storage.locationUri().get());
      }
    }
    return null;
  }

  private static Path place(TableIdentifier name, SparkSession session) {
    try {
      return new Path(session.sessionState().catalog().getTableMetadata(name).location());
    } catch (NoSuchNamespaceException | NoSuchTableException e) {
      return null; // Spark's own command has the better error message.
    }
  }

  /**
   * Returns the table to which the files of a directory belong. The table's root is the directory
   * itself, or a parent of it if the directory has the name of a partition or of the log. Returns
   * null if there is no table, or if this cannot be determined; in that case Spark's own write
   * raises the error. A directory with another name is allowed, although a VACUUM of the table
   * would delete its files.
   */
  static Path tableOf(Path directory, LogicalPlan plan, SparkSession session) {
    Configuration settings = settings(plan, session);
    try {
      FileSystem files = directory.getFileSystem(settings);
      for (Path at = directory; at != null; at = at.getParent()) {
        if (files.exists(new Path(at, LOG))) {
          return at;
        }
        if (!isOfTables(at.getName())) {
          return null;
        }
      }
    } catch (IOException e) {
      return null;
    }
    return null;
  }

  /**
   * Returns Hadoop's settings for a write. Some may come from options, such as the keys of a store.
   */
  private static Configuration settings(LogicalPlan plan, SparkSession session) {
    return plan instanceof InsertIntoHadoopFsRelationCommand insertIntoHadoopFsRelationCommand
        ? session
            .sessionState()
            .newHadoopConfWithOptions(insertIntoHadoopFsRelationCommand.options())
        : session.sessionState().newHadoopConf();
  }

  /**
   * Returns whether the name is one that directories within tables have. Such directories are never
   * tables themselves.
   */
  private static boolean isOfTables(String name) {
    return name.indexOf('=') >= 0
        || name.length() == PREFIX
        || name.equals(LOG)
        || name.equals(CHANGES)
        || name.equals(SIDECARS);
  }
}
