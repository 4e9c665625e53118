package io.deltalog.spark;

/**
 * The one place where a value gets a type whose arguments Java cannot check: Scala's collections
 * and Spark's fields that reflection reads, values of JSON texts, and results of Scala's methods
 * whose signatures lose the arguments.
 */
final class Unchecked {
  private Unchecked() {}

  @SuppressWarnings("unchecked")
  static <T> T cast(Object value) {
    return (T) value;
  }
}
