//! Converts between instants and the local times of a time zone.
//!
//! - A clock may be set back, so that a later instant has an earlier local time. [`Clock::least`] and
//!   [`Clock::greatest`] account for that.
//! - The time zone database ends with the year 2099. After that year, its last rules apply forever, as in Java: a
//!   later year has the same changes of the clock as an earlier year with the same calendar.
//! - Local times that a zone skips or repeats are resolved as in Java: a skipped time moves forward by the
//!   length of the gap, and a repeated time means the earlier of the two instants.

use crate::protocol::text::{MICROS_PER_DAY, calendar_date, days_since_epoch, parse_offset};
use chrono::{DateTime, LocalResult, Offset, TimeZone};
use chrono_tz::Tz;

/// The years that represent all later years. Within 28 years, every kind of calendar year occurs: common and leap
/// years that begin on each day of the week.
const LAST_YEARS: std::ops::Range<i64> = 2068..2096;

const MICROS_PER_SECOND: i64 = 1_000_000;
const MICROS_PER_HOUR: i64 = 3_600 * MICROS_PER_SECOND;

/// The clock of a time zone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Clock(Zone);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Zone {
    Region(Tz),
    /// A fixed offset in seconds east of UTC. It takes only four bytes, because conditions contain many clocks.
    Fixed(i32),
}

impl Clock {
    /// The clock of UTC.
    pub(super) const UTC: Self = Self(Zone::Fixed(0));

    /// A clock whose local time always differs from UTC's.
    pub(super) const ELSEWHERE: Self = Self(Zone::Fixed(3_600));

    /// Returns the clock of the time zone with this name; `None` if there is no such zone. The name is a region of
    /// the IANA database, or an offset that Spark accepts, such as `+02:00`, `-7` and `GMT+1`.
    pub(crate) fn named(name: &str) -> Option<Self> {
        // Java treats these names as fixed offsets that never changed.
        let name = match name {
            "EST" => "-05:00",
            "MST" => "-07:00",
            "HST" => "-10:00",
            name => name,
        };
        match name.parse() {
            Ok(Tz::UTC) => Some(Self::UTC),
            Ok(region) => Some(Self(Zone::Region(region))),
            Err(_) => {
                let offset = ["UTC", "GMT", "UT"].iter().find_map(|utc| name.strip_prefix(utc));
                match offset {
                    Some("") => Some(Self::UTC),
                    // A name such as UTCZ does not exist.
                    Some(offset) if !offset.starts_with(['+', '-']) => None,
                    offset => {
                        let seconds = parse_offset(offset.unwrap_or(name))?;
                        i32::try_from(seconds).ok().map(|seconds| Self(Zone::Fixed(seconds)))
                    }
                }
            }
        }
    }

    /// Returns a name for which [`Clock::named`] returns the same zone.
    pub(super) fn name(self) -> String {
        match self.0 {
            Zone::Region(region) => region.name().to_owned(),
            Zone::Fixed(seconds) => {
                let (sign, total) = (if seconds < 0 { '-' } else { '+' }, seconds.unsigned_abs());
                format!("{sign}{:02}:{:02}:{:02}", total / 3600, total / 60 % 60, total % 60)
            }
        }
    }

    /// Returns the clock's offset from UTC in microseconds.
    fn offset(self, instant: i64) -> Option<i64> {
        match self.0 {
            Zone::Fixed(seconds) => Some(micros(seconds)),
            Zone::Region(region) => {
                let utc = DateTime::from_timestamp_micros(instant - beyond(instant))?.naive_utc();
                Some(micros(region.offset_from_utc_datetime(&utc).fix().local_minus_utc()))
            }
        }
    }

    /// Returns the local time of an instant.
    pub(super) fn local(self, instant: i64) -> Option<i64> {
        instant.checked_add(self.offset(instant)?)
    }

    /// Returns a lower bound of the local times from `instant` on.
    pub(super) fn least(self, instant: i64) -> Option<i64> {
        self.extreme(instant, 1, Ord::min)
    }

    /// Returns an upper bound of the local times up to `instant`.
    pub(super) fn greatest(self, instant: i64) -> Option<i64> {
        self.extreme(instant, -1, Ord::max)
    }

    /// Returns a lower or upper bound of the local times after `instant`, or before it if `direction` is -1. The
    /// offsets of four instants, 12 hours apart, are enough: offsets differ by at most 32 hours, so more distant
    /// changes of the clock cannot matter, and two changes are at least 12 hours apart.
    fn extreme(self, instant: i64, direction: i64, choose: fn(i64, i64) -> i64) -> Option<i64> {
        if let Zone::Fixed(seconds) = self.0 {
            return instant.checked_add(micros(seconds));
        }
        let mut extreme = self.offset(instant)?;
        for hours in [12, 24, 36] {
            extreme =
                choose(extreme, self.offset(instant.checked_add(direction * hours * MICROS_PER_HOUR)?)?);
        }
        instant.checked_add(extreme)
    }

    /// Returns the instant with the local time `local`.
    pub(crate) fn instant(self, local: i64) -> Option<i64> {
        match self.resolved(local)? {
            LocalResult::Single(instant) | LocalResult::Ambiguous(instant, _) => Some(instant),
            // The local time is skipped. Use the offset that applied before the gap.
            LocalResult::None => local.checked_sub(self.offset(local.checked_sub(36 * MICROS_PER_HOUR)?)?),
        }
    }

    /// Returns the instant with the local time `local`, if there is exactly one.
    pub(super) fn only_instant(self, local: i64) -> Option<i64> {
        match self.resolved(local)? {
            LocalResult::Single(instant) => Some(instant),
            LocalResult::Ambiguous(..) | LocalResult::None => None,
        }
    }

    fn resolved(self, local: i64) -> Option<LocalResult<i64>> {
        let region = match self.0 {
            Zone::Fixed(seconds) => return local.checked_sub(micros(seconds)).map(LocalResult::Single),
            Zone::Region(region) => region,
        };
        let beyond = beyond(local);
        let time = DateTime::from_timestamp_micros(local - beyond)?.naive_utc();
        Some(region.from_local_datetime(&time).map(|instant| instant.timestamp_micros() + beyond))
    }

    /// Returns a lower and an upper bound of the instants that may have the local time `local`.
    pub(super) fn instants(self, local: i64) -> Option<(i64, i64)> {
        if let Zone::Fixed(seconds) = self.0 {
            let instant = local.checked_sub(micros(seconds))?;
            return Some((instant, instant));
        }
        let offsets = [-36, -24, -12, 0, 12, 24, 36]
            .map(|hours: i64| self.offset(local.checked_add(hours * MICROS_PER_HOUR)?));
        let offsets = offsets.into_iter().collect::<Option<Vec<i64>>>()?;
        Some((local.checked_sub(*offsets.iter().max()?)?, local.checked_sub(*offsets.iter().min()?)?))
    }
}

fn micros(seconds: i32) -> i64 {
    i64::from(seconds) * MICROS_PER_SECOND
}

/// Returns the distance between a time and the same time in one of the [`LAST_YEARS`]; 0 if the time is not after
/// these years.
fn beyond(time: i64) -> i64 {
    let (year, ..) = calendar_date(time.div_euclid(MICROS_PER_DAY));
    if year < LAST_YEARS.end {
        return 0;
    }
    let first_and_length = |year: i64| {
        let first = days_since_epoch(year, 1, 1);
        (first.rem_euclid(7), days_since_epoch(year + 1, 1, 1) - first)
    };
    let wanted = first_and_length(year);
    let like = LAST_YEARS.into_iter().find(|like| first_and_length(*like) == wanted).unwrap_or(year);
    (days_since_epoch(year, 1, 1) - days_since_epoch(like, 1, 1)) * MICROS_PER_DAY
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ZONES: [&str; 9] = [
        "UTC",
        "Europe/Berlin",
        "America/St_Johns",
        "Australia/Lord_Howe",
        "Pacific/Apia",
        "America/Sao_Paulo",
        "Asia/Manila",
        "Africa/Monrovia",
        "-03:30",
    ];

    /// Generates pairs of instants in the years 1840 to 2039, with up to three and a half days between them.
    fn instants() -> impl Strategy<Value = (i64, i64)> {
        (-4_100_000_000i64..2_200_000_000, 0..300_000i64)
            .prop_map(|(seconds, more)| (seconds * 1_000_000, (seconds + more) * 1_000_000))
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(20_000))]

        #[test]
        fn local_times_stay_within_the_bounds(
            (first, last) in instants(), zone in prop::sample::select(ZONES.to_vec()),
        ) {
            let clock = Clock::named(zone).unwrap();
            prop_assert!(clock.local(last) >= clock.least(first));
            prop_assert!(clock.local(first) <= clock.greatest(last));
        }

        #[test]
        fn instants_round_trip((instant, _) in instants(), zone in prop::sample::select(ZONES.to_vec())) {
            let clock = Clock::named(zone).unwrap();
            let local = clock.local(instant).unwrap();
            let (first, last) = clock.instants(local).unwrap();
            prop_assert!(first <= instant && instant <= last);
            let resolved = clock.instant(local).unwrap();
            prop_assert!(first <= resolved && resolved <= instant);
            prop_assert_eq!(clock.local(resolved), Some(local));
        }
    }

    #[test]
    fn zones_of_fixed_offset() {
        let seconds =
            |name: &str| Clock::named(name).map(|clock| clock.offset(0).unwrap() / MICROS_PER_SECOND);
        for (name, expected) in [
            ("Z", 0),
            ("UTC", 0),
            ("UT", 0),
            ("GMT", 0),
            ("+02:00", 7_200),
            ("+2", 7_200),
            ("-0730", -27_000),
            ("UTC-01:00", -3_600),
            ("GMT+1", 3_600),
            ("UT+00:00:30", 30),
            ("+18:00", 64_800),
            ("EST", -18_000),
            // The sign in the names of these regions is the opposite of the offset's, as in POSIX.
            ("Etc/GMT+2", -7_200),
        ] {
            assert_eq!(seconds(name), Some(expected), "{name}");
        }
        for name in ["", "+", "2", "+19", "+18:01", "UTCZ", "UTC 1", "Mars/Base", "+02:00 "] {
            assert_eq!(seconds(name), None, "{name}");
        }
    }

    #[test]
    fn the_last_rules_apply_forever() {
        // The clock changes on the second Sunday of March and the first Sunday of November, at 2:00.
        let clock = Clock::named("America/New_York").unwrap();
        for year in [2095, 2096, 2100, 2104, 2399, 9999] {
            let first = |month| days_since_epoch(year, month, 1);
            let sunday = |day: i64| day + (3 - day).rem_euclid(7);
            let (march, november) = (sunday(first(3)) + 7, sunday(first(11)));
            for (day, before, after) in [(march, -5, -4), (november, -4, -5)] {
                let change = day * MICROS_PER_DAY + 2 * MICROS_PER_HOUR - before * MICROS_PER_HOUR;
                assert_eq!(clock.offset(change - 1), Some(before * MICROS_PER_HOUR), "{year}");
                assert_eq!(clock.offset(change), Some(after * MICROS_PER_HOUR), "{year}");
            }
            let july = first(7) * MICROS_PER_DAY;
            assert_eq!(clock.instant(july), Some(july + 4 * MICROS_PER_HOUR), "{year}");
            assert_eq!(clock.only_instant(july), Some(july + 4 * MICROS_PER_HOUR), "{year}");
            assert_eq!(clock.only_instant(november * MICROS_PER_DAY + MICROS_PER_HOUR), None, "{year}");
        }
        // The last years include all kinds of calendar years.
        assert!((2096..2500).all(|year| beyond(days_since_epoch(year, 7, 1) * MICROS_PER_DAY) > 0));
    }

    #[test]
    fn skipped_and_repeated_times_resolve_as_in_java() {
        let clock = Clock::named("Europe/Berlin").unwrap();
        let seconds = |local: &str| {
            let local = chrono::NaiveDateTime::parse_from_str(local, "%Y-%m-%d %H:%M").unwrap();
            clock.instant(local.and_utc().timestamp_micros()).unwrap() / 1_000_000
        };
        assert_eq!(seconds("2024-03-31 02:30"), seconds("2024-03-31 03:30"));
        assert_eq!(seconds("2024-10-27 03:30") - seconds("2024-10-27 02:30"), 7_200);
        // On this day, the clock skips midnight.
        let clock = Clock::named("America/Sao_Paulo").unwrap();
        let midnight =
            chrono::NaiveDate::from_ymd_opt(2018, 11, 4).unwrap().and_time(chrono::NaiveTime::MIN).and_utc();
        assert_eq!(
            clock.local(clock.instant(midnight.timestamp_micros()).unwrap()).unwrap(),
            midnight.timestamp_micros() + 3_600_000_000
        );
    }
}
