package io.deltalog.spark;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.execution.datasources.FileIndex;
import org.apache.spark.sql.execution.datasources.PartitionDirectory;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;
import scala.collection.Iterator;
import scala.collection.immutable.Seq;

/** The partitions of a table at one version that have files. */
public class TablePartitions {
  private final FileIndex files;
  private final StructType schema;

  public TablePartitions(FileIndex files) {
    this.files = files;
    this.schema = files.partitionSchema();
  }

  /** Returns the values of the partitions in which the named columns have the given values. */
  public InternalRow[] with(String[] names, InternalRow values) {
    Seq<Expression> none = Plans.none();
    Iterator<PartitionDirectory> directories = files.listFiles(none, none).iterator();
    List<InternalRow> found = new ArrayList<>();
    while (directories.hasNext()) {
      InternalRow partition = directories.next().values();
      if (has(partition, names, values)) {
        found.add(partition);
      }
    }
    return found.toArray(new InternalRow[0]);
  }

  private boolean has(InternalRow partition, String[] names, InternalRow values) {
    for (int i = 0; i < names.length; i++) {
      int position = schema.fieldIndex(names[i]);
      DataType type = schema.fields()[position].dataType();
      if (!Arrays.deepEquals(
          new Object[] {partition.get(position, type)}, new Object[] {values.get(i, type)})) {
        return false;
      }
    }
    return true;
  }
}
