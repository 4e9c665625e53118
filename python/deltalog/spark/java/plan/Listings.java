package io.deltalog.spark;

import java.lang.ref.SoftReference;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * The listings that the texts of plans have made, until the scans take them: a file list is made once a scan,
 * whether or not somebody looks at the plan. Of a listing that nobody takes memory is given back when it is
 * wanted elsewhere; how many files it had stays known.
 */
public class Listings extends LinkedHashMap {
  private static final int MOST = 32;

  public Listings() {
    super(MOST, 0.75f, true);
  }

  protected boolean removeEldestEntry(Map.Entry eldest) {
    return size() > MOST;
  }

  /** What is known of the listing, or null. */
  public synchronized Listing known(Object key) {
    return (Listing) get(key);
  }

  public synchronized Listing keep(Object key, PackedListing files) {
    Listing listing = new Listing(files);
    put(key, listing);
    return listing;
  }

  /**
   * Of a listing that a scan has made for itself: the text that is asked for afterwards needs no other one.
   */
  public synchronized void note(Object key, PackedListing files) {
    put(key, new Listing(files));
    take(key);
  }

  /** The listing, which is its taker's from now on, or null. */
  public synchronized PackedListing take(Object key) {
    Listing listing = (Listing) get(key);
    if (listing == null || listing.files == null) {
      return null;
    }
    PackedListing files = (PackedListing) listing.files.get();
    listing.files = null;
    return files;
  }

  /** What stays known of a listing. */
  public static final class Listing {
    public final String counts;
    public final boolean hasVectors;
    SoftReference files;

    Listing(PackedListing files) {
      this.counts = files.count() + " of " + files.total() + " files";
      this.hasVectors = files.hasVectors();
      this.files = new SoftReference(files);
    }
  }
}
