package io.deltalog.spark;

import org.apache.spark.sql.catalyst.expressions.Cast;
import org.apache.spark.sql.catalyst.expressions.Cast$;
import org.apache.spark.sql.catalyst.expressions.EvalMode$;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import scala.Option;

/**
 * Casts values that Spark's rules do not accept for a column of another type, such as a string for
 * a column of numbers. As in the JVM connector, such a value is cast by the rules of ANSI SQL, so a
 * value that does not fit raises an error. This only applies under the store assignment policy
 * ANSI.
 */
public class StoredCast {
  private final SQLConf conf;
  private final boolean byName;

  /**
   * Creates the casts; byName states whether fields of structs are matched by name or by position.
   */
  public StoredCast(SQLConf conf, boolean byName) {
    this.conf = conf;
    this.byName = byName;
  }

  /** Casts the value to a type that Spark's rules accept for the column, if there is one. */
  public Expression of(Expression value, DataType column) {
    if (!conf.storeAssignmentPolicy().equals(SQLConf.StoreAssignmentPolicy$.MODULE$.ANSI())) {
      return value;
    }
    DataType type = storable(value.dataType(), column);
    if (type.equals(value.dataType())) {
      return value;
    }
    Option<String> zone = Option.apply(conf.sessionLocalTimeZone());
    Cast cast = new Cast(value, type, zone, EvalMode$.MODULE$.ANSI());
    cast.setTagValue(Cast$.MODULE$.BY_TABLE_INSERTION(), scala.runtime.BoxedUnit.UNIT);
    return cast;
  }

  /**
   * Returns the given type. Parts of it that Spark would cast only explicitly are replaced with the
   * column's types.
   */
  private DataType storable(DataType given, DataType column) {
    if (given instanceof StructType from && column instanceof StructType to) {
      StructField[] fields = from.fields().clone();
      for (int i = 0; i < fields.length; i++) {
        int at = byName ? position(to, fields[i].name()) : i;
        if (at >= 0 && at < to.fields().length) {
          DataType type = storable(fields[i].dataType(), to.fields()[at].dataType());
          fields[i] =
              new StructField(fields[i].name(), type, fields[i].nullable(), fields[i].metadata());
        }
      }
      return new StructType(fields);
    }
    if (given instanceof ArrayType from && column instanceof ArrayType to) {
      return new ArrayType(storable(from.elementType(), to.elementType()), from.containsNull());
    }
    if (given instanceof MapType from && column instanceof MapType to) {
      DataType key = storable(from.keyType(), to.keyType());
      DataType value = storable(from.valueType(), to.valueType());
      return new MapType(key, value, from.valueContainsNull());
    }
    boolean isCast =
        !Cast$.MODULE$.canANSIStoreAssign(given, column)
            && Cast$.MODULE$.canAnsiCast(given, column);
    return isCast ? column : given;
  }

  private int position(StructType type, String name) {
    for (int i = 0; i < type.fields().length; i++) {
      if ((Boolean) conf.resolver().apply(type.fields()[i].name(), name)) {
        return i;
      }
    }
    return -1;
  }
}
