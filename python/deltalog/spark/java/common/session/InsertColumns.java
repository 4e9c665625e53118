package io.deltalog.spark;

import java.util.Set;
import org.apache.spark.sql.connector.catalog.TableWritePrivilege;

/**
 * Who fits the rows of an INSERT to the columns of the table: we do, as for other writes. Spark's
 * analyzer refuses rows that lack a NOT NULL column whose values we compute, before 4.2 all that
 * lack columns, and values that we cast (StoredCast). A MERGE that updates asks for another
 * privilege.
 */
public class InsertColumns {
  private InsertColumns() {}

  public static boolean areLeftToUs(Set<TableWritePrivilege> privileges) {
    return privileges.contains(TableWritePrivilege.INSERT)
        && !privileges.contains(TableWritePrivilege.UPDATE);
  }
}
