package io.deltalog.spark;

/** Bytes that are not the deletion vector that they should be; says why. */
public class MalformedVector extends Exception {
  public MalformedVector(String why) {
    super(why);
  }
}
