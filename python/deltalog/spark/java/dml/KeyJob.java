package io.deltalog.spark;

import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.execution.QueryExecution;
import org.apache.spark.sql.execution.SQLExecution$;
import org.apache.spark.sql.types.DataType;
import scala.Option;
import scala.reflect.ClassTag$;
import scala.runtime.AbstractFunction0;

/** The job that looks at the keys of a MERGE's source, in one pass without a shuffle. */
public class KeyJob extends AbstractFunction0 {
  private final QueryExecution query;
  private final DataType[] types;
  private final KeySummary summary;

  /** Creates the job for rows as KeySummary describes them. */
  public KeyJob(Dataset rows) {
    query = rows.queryExecution();
    Object[] columns = Plans.list(query.analyzed().output()).toArray();
    types = new DataType[columns.length - 1];
    for (int i = 0; i < types.length; i++) {
      types[i] = ((Attribute) columns[1 + i]).dataType();
    }
    summary = new KeySummary(types);
  }

  public KeySummary run() {
    SQLExecution$.MODULE$.withNewExecutionId(query, Option.apply("deltalog"), this);
    return summary;
  }

  public Object apply() {
    query.sparkSession().sparkContext().runJob(
        query.toRdd(), new KeyTask(types), new KeyResults(summary), ClassTag$.MODULE$.apply(byte[].class));
    return null;
  }
}
