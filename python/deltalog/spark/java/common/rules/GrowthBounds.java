package io.deltalog.spark;

import java.util.Arrays;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.objects.StaticInvoke;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DateType;
import org.apache.spark.sql.types.IntegralType;
import org.apache.spark.unsafe.types.CalendarInterval;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * Estimates how large the value of a function will become, before it is computed.
 *
 * <p>Most functions return values that are at most a few times as large as their arguments. The
 * functions here have arguments that give a better bound: a number of repetitions, a length, or a
 * replacement string.
 */
public class GrowthBounds {
  private static final Pattern NUMBER = Pattern.compile("\\d+");
  private static final Pattern GROUP = Pattern.compile("\\$");

  private static final Pattern LOOKAROUND = Pattern.compile("\\(\\?<?[=!]");

  /** The maximum size of a character, in bytes. */
  private static final long OF_CHARACTER = 4;

  /** The maximum length of a number that is formatted without a width, in characters. */
  private static final long OF_NUMBER = 1000;

  private static final double MICROS_OF_DAY = 86_400_000_000.0;
  private static final double DAYS_OF_MONTH = 28;

  private GrowthBounds() {}

  /**
   * Returns an approximate maximum for the number of bytes that the value of a call takes. The
   * value may take up to four times as many.
   */
  public static double of(Expression call, Object[] values, DataType[] types, double arguments) {
    String function =
        call instanceof StaticInvoke invoke
            ? invoke.functionName()
            : call.getClass().getSimpleName();
    if (isNull(function, values)) {
      return arguments;
    }
    return arguments
        + switch (function) {
          case "StringRepeat" -> bytes(values[0]) * number(values[1]);
          case "StringSpace" -> number(values[0]);
          case "StringLPad", "StringRPad", "lpad", "rpad" -> OF_CHARACTER * number(values[1]);
          case "ArrayRepeat" ->
              (double) ValueSize.of(values[0], types[0], Long.MAX_VALUE) * number(values[1]);
          case "ArrayInsert" -> ValueSize.OF_EACH * number(values[1]);
          case "FormatNumber" -> values[1] instanceof Integer ? number(values[1]) : 0;
          case "FormatString" -> ofFormat(text(values[0]), arguments);
          case "StringReplace" ->
              bytes(values[0]) / Math.max(1, bytes(values[1])) * bytes(values[2]);
          case "RegExpReplace" -> ofRegex(values);
          case "ConcatWs" -> ofSeparator(values);
          case "ArrayJoin" -> ofJoined(values);
          case "Sequence" -> ValueSize.OF_EACH * ofSteps(values, types);
          default -> 0;
        };
  }

  /** Returns whether the value is NULL because an argument is NULL. */
  private static boolean isNull(String function, Object[] values) {
    return switch (function) {
      case "ConcatWs", "FormatString" -> values[0] == null;
      case "ArrayInsert", "ArrayRepeat" -> values[1] == null;
      default -> Arrays.asList(values).contains(null);
    };
  }

  private static double bytes(Object value) {
    return value instanceof byte[] bytes ? bytes.length : ((UTF8String) value).numBytes();
  }

  private static double number(Object value) {
    return Math.abs(((Number) value).doubleValue());
  }

  private static String text(Object value) {
    return value.toString();
  }

  /**
   * Bounds the size by the numbers in a format, which are widths, digits after the point, or
   * positions of arguments.
   */
  private static double ofFormat(String format, double arguments) {
    double bytes = 0;
    Matcher numbers = NUMBER.matcher(format);
    while (numbers.find()) {
      bytes += Double.parseDouble(numbers.group());
    }
    double conversions = format.chars().filter(c -> c == '%').count();
    return bytes * OF_CHARACTER + conversions * (arguments + OF_NUMBER);
  }

  /**
   * Bounds the result of a replacement: each match becomes the replacement with the contents of its
   * groups, and only lookaround reads text twice.
   */
  private static double ofRegex(Object[] values) {
    double length = bytes(values[0]);
    double groups = GROUP.matcher(text(values[2])).results().count();
    double read = LOOKAROUND.matcher(text(values[1])).find() ? (length + 1) * length : length;
    return (length + 1) * bytes(values[2]) + groups * read;
  }

  private static double ofSeparator(Object[] values) {
    double parts = 0;
    for (int i = 1; i < values.length; i++) {
      parts += values[i] instanceof ArrayData array ? array.numElements() : 1;
    }
    return parts * bytes(values[0]);
  }

  private static double ofJoined(Object[] values) {
    double separators = bytes(values[1]) + (values.length > 2 ? bytes(values[2]) : 0);
    return ((ArrayData) values[0]).numElements() * separators;
  }

  /** Returns the maximum number of steps of a sequence. */
  private static double ofSteps(Object[] values, DataType[] types) {
    double unit = types[0] instanceof DateType ? MICROS_OF_DAY : 1;
    double way =
        Math.abs(((Number) values[1]).doubleValue() - ((Number) values[0]).doubleValue()) * unit;
    boolean areNumbers = types[0] instanceof IntegralType;
    double step = areNumbers ? 1 : MICROS_OF_DAY;
    if (values.length > 2 && values[2] instanceof CalendarInterval interval) {
      double days = interval.months * DAYS_OF_MONTH + interval.days;
      step = Math.abs(days * MICROS_OF_DAY + interval.microseconds);
    } else if (values.length > 2) {
      // Intervals of years and months are stored as numbers of months.
      boolean areMonths =
          types[2].typeName().startsWith("interval") && values[2] instanceof Integer;
      step = number(values[2]) * (areMonths ? DAYS_OF_MONTH * MICROS_OF_DAY : 1);
    }
    return step == 0 ? (way == 0 ? 1 : Double.POSITIVE_INFINITY) : 1 + way / step;
  }
}
