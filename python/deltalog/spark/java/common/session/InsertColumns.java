package io.deltalog.spark;

import java.util.Set;
import org.apache.spark.sql.connector.catalog.TableWritePrivilege;

/**
 * Makes deltalog, and not Spark's analyzer, fit the rows of an INSERT to the columns of the table,
 * as for other writes. Spark's analyzer would refuse some rows that deltalog accepts: rows that
 * lack a NOT NULL column whose values deltalog computes, before 4.2 all rows that lack columns, and
 * values that deltalog casts (StoredCast). A MERGE that updates is not affected, because it
 * requests another privilege.
 */
public class InsertColumns {
  private InsertColumns() {}

  public static boolean areLeftToUs(Set<TableWritePrivilege> privileges) {
    return privileges.contains(TableWritePrivilege.INSERT)
        && !privileges.contains(TableWritePrivilege.UPDATE);
  }
}
