package io.deltalog.spark;

import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.connector.catalog.TableChange;

/** Calls to Python for definitions of tables: CREATE, REPLACE and ALTER TABLE. */
public interface DefinitionCalls {
  /** Refuses options of a table that may be secrets. The options are passed as JSON. */
  void checkOptions(String options);

  /** Returns the functions that expressions of tables may call, as the JSON of RuleFunctions. */
  String ruleFunctions();

  /** Creates or replaces a table without rows; definition is the JSON of TableDefinition. */
  void create(SparkSession session, String definition);

  /** Returns the path at which a table is to be created. */
  String place(SparkSession session, String definition);

  /**
   * Creates, replaces or overwrites a table with rows.
   *
   * @param definition the JSON of TableDefinition
   * @param options the JSON of the options of the write
   */
  void createAsSelect(SparkSession session, String definition, Dataset<Row> rows, String options);

  /**
   * Changes a table in one commit.
   *
   * @param options the JSON of the options with which the table is opened, including its path
   */
  void alter(SparkSession session, String options, TableChange[] changes);

  /**
   * Checks a new location for a catalog entry, and returns its path. The table there must have the
   * same columns as the entry's current table.
   *
   * @param options the JSON of the options with which the table of the entry is opened
   */
  String relocated(SparkSession session, String options, String location);
}
