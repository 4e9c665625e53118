package io.deltalog.spark;

import java.util.Comparator;

/** The order of rows, by their numbers: by the tasks, and in each by the places on the curve. */
public class PlaceOrder implements Comparator {
  private final int[] tasks;
  private final byte[][] places;

  public PlaceOrder(int[] tasks, byte[][] places) {
    this.tasks = tasks;
    this.places = places;
  }

  @Override
  public int compare(Object a, Object b) {
    int first = ((Integer) a).intValue();
    int second = ((Integer) b).intValue();
    int order = Integer.compare(tasks[first], tasks[second]);
    return order != 0 ? order : OrderedColumn.compare(places[first], places[second]);
  }
}
