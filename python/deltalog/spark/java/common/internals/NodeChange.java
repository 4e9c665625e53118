package io.deltalog.spark;

import scala.Function1;
import scala.runtime.AbstractPartialFunction;

/** A change of some nodes of a tree, as Spark's `transform` takes it. */
abstract class NodeChange<N> extends AbstractPartialFunction<N, N> {

  /** Returns whether a node is changed. */
  @Override
  public abstract boolean isDefinedAt(N node);

  /** Returns the replacement for a node. */
  protected abstract N changed(N node);

  @Override
  public <A extends N, B> B applyOrElse(A node, Function1<A, B> otherwise) {
    return isDefinedAt(node) ? Unchecked.cast(changed(node)) : otherwise.apply(node);
  }
}
