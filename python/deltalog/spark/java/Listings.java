package io.deltalog.spark;

import java.lang.ref.SoftReference;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * The listings that the texts of plans have made, until the scans take them: a file list is made once a scan, whether or not somebody looks at the
 * plan. Of a listing that nobody takes memory is given back when it is wanted elsewhere; how many files it had stays known.
 */
public class Listings extends LinkedHashMap {
  private static final int MOST = 32;

  public Listings() {
    super(MOST, 0.75f, true);
  }

  protected boolean removeEldestEntry(Map.Entry eldest) {
    return size() > MOST;
  }

  /** What is known of the listing's size, or null. */
  public synchronized String counts(Object key) {
    Listing listing = (Listing) get(key);
    return listing == null ? null : listing.counts;
  }

  public synchronized String keep(Object key, PackedListing files) {
    Listing listing = new Listing(files);
    put(key, listing);
    return listing.counts;
  }

  /** Of a listing that a scan has made for itself: the text that is asked for afterwards needs no other one. */
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

  private static final class Listing {
    final String counts;
    SoftReference files;

    Listing(PackedListing files) {
      this.counts = files.count() + " of " + files.total() + " files";
      this.files = new SoftReference(files);
    }
  }
}
