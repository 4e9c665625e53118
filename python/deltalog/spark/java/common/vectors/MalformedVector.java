package io.deltalog.spark;

/** The reason why bytes are not a valid deletion vector. */
public class MalformedVector extends Exception {
  public MalformedVector(String why) {
    super(why);
  }
}
