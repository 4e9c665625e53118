package io.deltalog.spark;

import java.util.HashMap;
import java.util.Map;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.JsonToStructs;
import org.apache.spark.sql.catalyst.expressions.Literal$;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.connector.read.LocalScan;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;
import scala.Option;

/** The rows of a procedure, which Python returns as JSON. */
public class ProcedureResult implements LocalScan {
  private final StructType schema;
  private final String rows;

  /** Creates the result from a schema as JSON and an array of objects as JSON. */
  public ProcedureResult(String schema, String rows) {
    this.schema = (StructType) DataType.fromJson(schema);
    this.rows = rows;
  }

  @Override
  public StructType readSchema() {
    return schema;
  }

  @Override
  public InternalRow[] rows() {
    Map<String, String> options = new HashMap<>();
    options.put("mode", "FAILFAST");
    Object[] fields = {
      new ArrayType(schema, false),
      TableOptions.scala(options),
      Literal$.MODULE$.apply(rows),
      Option.apply("UTC")
    };
    ArrayData parsed;
    try {
      parsed = (ArrayData) ((Expression) CaseClass.create(JsonToStructs.class, fields)).eval(null);
    } catch (RuntimeException e) {
      throw e;
    } catch (Exception e) {
      throw new IllegalStateException(
          "deltalog cannot use the JSON functions of this version of Spark: " + e, e);
    }
    InternalRow[] found = new InternalRow[parsed.numElements()];
    for (int i = 0; i < found.length; i++) {
      found[i] = parsed.getStruct(i, schema.length());
    }
    return found;
  }
}
