package io.deltalog.spark;

/** The catalog of Spark 4.1. */
public final class DeltalogCatalog extends TableInfoCatalog {}
