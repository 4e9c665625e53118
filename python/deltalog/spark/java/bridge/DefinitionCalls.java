package io.deltalog.spark;

import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.connector.catalog.TableChange;
import scala.collection.immutable.Map;

/** Definitions of tables: CREATE, REPLACE and ALTER TABLE. */
public interface DefinitionCalls {
  /** Creates or replaces a table without rows; definition is the JSON of TableDefinition. */
  void create(SparkSession session, String definition);

  /**
   * Creates, replaces or overwrites a table with rows.
   *
   * @param definition the JSON of TableDefinition
   * @param options the options of the write
   */
  void createAsSelect(SparkSession session, String definition, Dataset rows, Map options);

  /** Changes the table with the path among the options, in one commit. */
  void alter(SparkSession session, Map options, TableChange[] changes);
}
