package io.deltalog.spark;

/**
 * The one place where a value gets a type whose arguments Java cannot check: Scala's collections
 * and Spark's fields that reflection reads, values of JSON texts, and results of Scala's methods
 * whose signatures lose the arguments.
 *
 * <p>A result has the type that its user expects, so it is never an argument of a method that is
 * overloaded.
 */
final class Unchecked {
  private Unchecked() {}

  @SuppressWarnings({"unchecked", "TypeParameterUnusedInFormals"})
  static <T> T cast(Object value) {
    return (T) value;
  }
}
