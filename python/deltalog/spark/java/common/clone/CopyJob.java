package io.deltalog.spark;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.api.java.JavaRDD;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.broadcast.Broadcast;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.RowFactory;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.util.SerializableConfiguration;

/**
 * The job that copies the data files of a table to its clone. Each task has one row, which lists
 * the files to copy.
 */
public class CopyJob extends AnswerJob {
  private final Broadcast<SerializableConfiguration> configuration;
  private final String source;
  private final String clone;
  private final ByteArrayOutputStream copied = new ByteArrayOutputStream();

  /**
   * Takes the URLs of both tables, and data that Python has packed: deltalog's version (its length
   * as i32, and its text), the number of tasks (i32), and the rows.
   */
  public CopyJob(SparkSession session, String source, String clone, Object packed) {
    super(rows(session, PackedValues.ofThisVersion(PackedValues.bytes(packed))));
    this.source = Locations.path(session, source);
    this.clone = Locations.path(session, clone);
    SerializableConfiguration settings =
        new SerializableConfiguration(session.sessionState().newHadoopConf());
    configuration =
        session
            .sparkContext()
            .broadcast(
                settings, scala.reflect.ClassTag$.MODULE$.apply(SerializableConfiguration.class));
  }

  private static Dataset<Row> rows(SparkSession session, PackedValues packed) {
    List<Row> rows = new ArrayList<>();
    for (int tasks = packed.count(); tasks > 0; tasks--) {
      rows.add(RowFactory.create((Object) packed.raw()));
    }
    JavaSparkContext context = JavaSparkContext.fromSparkContext(session.sparkContext());
    JavaRDD<Row> each = context.parallelize(rows, Math.max(rows.size(), 1));
    return session.createDataFrame(
        each, new StructType().add("files", DataTypes.BinaryType, false));
  }

  public void run() {
    try {
      run(new CopyTask(source, clone, configuration));
    } finally {
      configuration.destroy();
    }
  }

  @Override
  protected void add(byte[] answer) throws IOException {
    copied.write(answer);
  }

  /** Returns the reports of the tasks about their copies. */
  public byte[] copied() {
    return copied.toByteArray();
  }
}
