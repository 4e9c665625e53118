package io.deltalog.spark;

import java.util.Set;
import org.apache.spark.sql.connector.catalog.TableWritePrivilege;

/**
 * Decides who fits the rows of an INSERT to the columns of the table. We do, as for other writes,
 * because Spark's analyzer refuses some rows that we accept: rows that lack a NOT NULL column whose
 * values we compute, before 4.2 all rows that lack columns, and values that we cast (StoredCast). A
 * MERGE that updates asks for another privilege.
 */
public class InsertColumns {
  private InsertColumns() {}

  public static boolean areLeftToUs(Set<TableWritePrivilege> privileges) {
    return privileges.contains(TableWritePrivilege.INSERT)
        && !privileges.contains(TableWritePrivilege.UPDATE);
  }
}
