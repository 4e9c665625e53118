package io.deltalog.spark;

import java.io.ByteArrayInputStream;
import java.io.DataInputStream;
import java.io.IOException;
import java.util.HashMap;
import java.util.List;
import org.apache.spark.sql.Column;
import org.apache.spark.sql.api.java.UDF1;
import org.apache.spark.sql.functions;
import org.apache.spark.sql.types.DataTypes;
import org.roaringbitmap.RoaringBitmap;

/**
 * The rows of a MERGE's source that have matched a row of the target, by their monotonically
 * increasing ids.
 */
public class SourceMatches implements UDF1<Long, Boolean> {
  private final HashMap<Long, RoaringBitmap> matched = new HashMap<>();

  /** Collects the ids from the reports of the tasks. */
  public SourceMatches(List<byte[]> reports) throws IOException {
    for (byte[] written : reports) {
      DataInputStream report = new DataInputStream(new ByteArrayInputStream(written));
      report.readByte();
      while (report.available() > 0) {
        int kind = report.readByte();
        byte[] content = new byte[report.readInt()];
        report.readFully(content);
        if (kind == TaskReport.MATCHED_ROWS) {
          add(new DataInputStream(new ByteArrayInputStream(content)));
        }
      }
    }
  }

  private void add(DataInputStream content) throws IOException {
    Long key = Long.valueOf(content.readLong());
    RoaringBitmap more = new RoaringBitmap();
    more.deserialize(content);
    RoaringBitmap known = matched.get(key);
    if (known == null) {
      matched.put(key, more);
    } else {
      known.or(more);
    }
  }

  /** Returns the condition that the row with this id has not matched. */
  public Column excludes(Column id) {
    Column[] arguments = {id};
    return functions.not(
        functions.udf(this, DataTypes.BooleanType).asNonNullable().apply(arguments));
  }

  @Override
  public Boolean call(Long id) {
    long source = id;
    long row = source & 0x1ffffffffL;
    RoaringBitmap bitmap = matched.get(Long.valueOf(((source >>> 33) << 32) | (row >>> 32)));
    return Boolean.valueOf(bitmap != null && bitmap.contains((int) row));
  }
}
