package io.deltalog.spark;

/**
 * The one place with unchecked casts to generic types: for Scala's collections and Spark's fields
 * that reflection reads, values of JSON texts, and results of Scala's methods whose signatures lose
 * the type arguments.
 *
 * <p>The result takes the type that the caller expects, so it must not be an argument of an
 * overloaded method.
 */
final class Unchecked {
  private Unchecked() {}

  @SuppressWarnings({"unchecked", "TypeParameterUnusedInFormals"})
  static <T> T cast(Object value) {
    return (T) value;
  }
}
