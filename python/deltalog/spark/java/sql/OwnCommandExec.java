package io.deltalog.spark;

import java.util.ArrayList;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.execution.datasources.v2.V2CommandExec;
import scala.collection.immutable.IndexedSeq;
import scala.collection.immutable.Seq;

/** A statement of ours, which is executed when the plan runs, but not when it is explained. It has no children. */
public abstract class OwnCommandExec extends V2CommandExec {
  protected static Seq none() {
    return Plans.seq(new ArrayList());
  }

  public Seq output() {
    return none();
  }

  public Seq children() {
    return none();
  }

  public TreeNode withNewChildrenInternal(IndexedSeq children) {
    return this;
  }

  public boolean canEqual(Object other) {
    return other == this;
  }
}
