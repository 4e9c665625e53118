package io.deltalog.spark;

import java.util.List;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.RowFactory;
import org.apache.spark.sql.SQLContext;
import org.apache.spark.sql.sources.BaseRelation;
import org.apache.spark.sql.sources.TableScan;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import scala.collection.immutable.Map;

/**
 * The answer to a command of `DeltaTable`, which a Spark Connect client requests through the
 * options of a read: one row with one text. The command is executed when the read is executed.
 */
public final class CommandAnswer extends BaseRelation implements TableScan {
  static final String COMMAND = "deltalog.command";

  private final SQLContext context;
  private final Map<String, String> options;

  CommandAnswer(SQLContext context, Map<String, String> options) {
    this.context = context;
    this.options = options;
  }

  @Override
  public SQLContext sqlContext() {
    return context;
  }

  @Override
  public StructType schema() {
    return new StructType().add("answer", DataTypes.StringType);
  }

  @Override
  public RDD<Row> buildScan() {
    String answer = Bridge.tables().answer(context.sparkSession(), TableOptions.json(options));
    JavaSparkContext spark =
        JavaSparkContext.fromSparkContext(context.sparkSession().sparkContext());
    return spark.parallelize(List.of(RowFactory.create(answer)), 1).rdd();
  }
}
