package io.deltalog.spark;

import java.lang.ref.SoftReference;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * Keeps the listings that are made while scans are planned until the scans take them, so that files
 * are listed once per scan. An unclaimed listing is softly referenced and may be reclaimed; its
 * counts are kept.
 */
public class Listings extends LinkedHashMap<Object, Listings.Listing> {
  private static final int MOST = 32;

  public Listings() {
    super(MOST, 0.75f, true);
  }

  @Override
  protected boolean removeEldestEntry(Map.Entry<Object, Listing> eldest) {
    return size() > MOST;
  }

  /** Returns the entry of a listing, or null. */
  public synchronized Listing known(Object key) {
    return get(key);
  }

  /** Keeps a listing for its scan. */
  public synchronized Listing keep(Object key, PackedListing files) {
    Listing listing = new Listing(files);
    put(key, listing);
    return listing;
  }

  /** Records the counts of a listing that a scan made for itself. */
  public synchronized void note(Object key, PackedListing files) {
    put(key, new Listing(files));
    take(key);
  }

  /** Passes a listing to the caller; returns null if there is none. */
  public synchronized PackedListing take(Object key) {
    Listing listing = get(key);
    if (listing == null || listing.files == null) {
      return null;
    }
    PackedListing files = listing.files.get();
    listing.files = null;
    return files;
  }

  /** The counts and the size of a listing, and the listing itself until it is taken. */
  public static final class Listing {
    public final String counts;
    public final long size;
    public final boolean hasVectors;
    SoftReference<PackedListing> files;

    Listing(PackedListing files) {
      this.counts = files.count() + " of " + files.total() + " files";
      this.size = files.size();
      this.hasVectors = files.hasVectors();
      this.files = new SoftReference<>(files);
    }
  }
}
