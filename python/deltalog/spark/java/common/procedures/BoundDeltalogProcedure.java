package io.deltalog.spark;

import java.util.ArrayList;
import java.util.Collections;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.catalog.procedures.BoundProcedure;
import org.apache.spark.sql.connector.catalog.procedures.ProcedureParameter;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.types.DataType;

/** A procedure that Python executes. Its first parameter is the name or the path of a table. */
public class BoundDeltalogProcedure extends DescribedProcedure implements BoundProcedure {
  public BoundDeltalogProcedure(Map<String, ?> description, boolean hasResult) {
    super(description, hasResult);
  }

  @Override
  public boolean isDeterministic() {
    return false;
  }

  @Override
  public ProcedureParameter[] parameters() {
    List<Map<String, ?>> described = described();
    ProcedureParameter[] parameters = new ProcedureParameter[described.size()];
    for (int i = 0; i < parameters.length; i++) {
      Map<String, ?> parameter = described.get(i);
      ProcedureParameter.Builder builder =
          ProcedureParameter.in(text(parameter, "name"), type(parameter));
      builder.comment(text(parameter, "comment"));
      if (parameter.get("default") != null) {
        builder.defaultValue(text(parameter, "default"));
      }
      parameters[i] = builder.build();
    }
    return parameters;
  }

  private static DataType type(Map<String, ?> parameter) {
    return DataType.fromDDL(text(parameter, "type"));
  }

  @Override
  public Iterator<Scan> call(InternalRow values) {
    SparkSession session = (SparkSession) org.apache.spark.sql.SparkSession.active();
    List<Map<String, ?>> described = described();
    List<Object> arguments = new ArrayList<>();
    for (int i = 1; i < described.size(); i++) {
      arguments.add(values.isNullAt(i) ? null : argument(values.get(i, type(described.get(i)))));
    }
    String table = values.isNullAt(0) ? "" : values.getUTF8String(0).toString();
    if (table.trim().isEmpty()) {
      throw Bridge.refusals().noTable(name());
    }
    boolean isForDirectory = Boolean.TRUE.equals(description.get("isForDirectory"));
    Map<String, String> place =
        isForDirectory ? TableNames.directory(session, table) : TableNames.options(session, table);
    String options = TableOptions.json(place);
    String rows = Bridge.procedures().call(session, name(), table, options, Json.text(arguments));
    if (!hasResult) {
      return Collections.emptyIterator();
    }
    return Collections.<Scan>singletonList(new ProcedureResult(text(description, "output"), rows))
        .iterator();
  }

  /** Converts an argument to a number, a boolean, a string, or a list of strings. */
  private static Object argument(Object value) {
    if (!(value instanceof ArrayData array)) {
      return value instanceof Number || value instanceof Boolean ? value : value.toString();
    }

    List<String> texts = new ArrayList<>();
    for (int i = 0; i < array.numElements(); i++) {
      texts.add(array.isNullAt(i) ? null : array.getUTF8String(i).toString());
    }
    return texts;
  }
}
