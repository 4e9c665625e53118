package io.deltalog.spark;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import org.apache.spark.sql.catalyst.analysis.NamedParameter;
import org.apache.spark.sql.catalyst.analysis.PosParameter;
import org.apache.spark.sql.catalyst.expressions.Expression;

/**
 * The text of a condition with markers of parameters, as an SQL expression that has the text with
 * values in their places. Spark binds the markers, wherever they are in that expression.
 *
 * <pre>
 * day = :day    →    concat('day = ', 'CAST(\'' || … :day … || '\' AS ' || typeof(:day) || ')')
 * </pre>
 */
final class BoundText {
  private BoundText() {}

  /** Returns the expression for a text and what Spark parsed it to; null if it has no marker. */
  static String expression(String text, Expression parsed) {
    List<NamedParameter> markers = new ArrayList<>();
    collect(parsed, markers);
    if (markers.isEmpty()) {
      return null;
    }
    markers.sort((one, other) -> Integer.compare(start(one), start(other)));
    List<String> parts = new ArrayList<>();
    int end = 0;
    for (NamedParameter marker : markers) {
      parts.add(constant(text.substring(end, start(marker))));
      parts.add(value(":`" + marker.name() + "`"));
      end = (int) marker.origin().stopIndex().get() + 1;
    }
    parts.add(constant(text.substring(end)));
    return "concat(" + String.join(", ", parts) + ")";
  }

  private static void collect(Expression part, List<NamedParameter> markers) {
    if (part instanceof PosParameter) {
      throw new UnsupportedOperationException(
          "deltalog: a condition of this statement cannot have the parameter ?: give it a name, as"
              + " in :name");
    }
    if (part instanceof NamedParameter marker) {
      markers.add(marker);
    }
    for (Expression expression : Plans.each(part.children())) {
      collect(expression, markers);
    }
  }

  private static int start(NamedParameter marker) {
    return (int) marker.origin().startIndex().get();
  }

  /** Returns a text constant. How Spark reads quoted texts depends on settings. */
  private static String constant(String text) {
    String bytes = HexFormat.of().formatHex(text.getBytes(StandardCharsets.UTF_8));
    return "CAST(X'" + bytes + "' AS STRING)";
  }

  /** Returns the expression of a constant with the value and the type of a parameter. */
  private static String value(String marker) {
    String escaped =
        "replace(replace(CAST("
            + marker
            + " AS STRING), chr(92), concat(chr(92), chr(92))), chr(39), concat(chr(92), chr(39)))";
    return "coalesce(concat('CAST(', chr(39), "
        + escaped
        + ", chr(39), ' AS ', typeof("
        + marker
        + "), ')'), 'NULL')";
  }
}
