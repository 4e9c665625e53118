//! The functions that an expression in a table's metadata may call.
//!
//! An attacker may have written an expression into the log, and could read its values in the table later. An
//! expression may therefore only call functions that compute their value from their arguments, or from the time at
//! which the statement began. No function listed here reads a file, an environment variable, a setting, the network
//! or the names of users and catalogs, and none runs code of the Spark session.
//!
//! - This crate evaluates only the functions that it implements.
//! - In tables that other engines have defined, Spark may also evaluate the functions in [`OF_SPARK`]. When deltalog
//!   itself defines or changes a table, it only allows the functions of this crate, so that Rust, Python and Spark can
//!   all write to the table.
//! - Some deterministic functions are left out on purpose: XML functions, because their parsers can open files;
//!   Protobuf and Avro functions, because they read descriptors from files or are not part of Spark; sketch functions,
//!   because their parsers read past the end of their bytes; geometry functions, because no table has geometries;
//!   functions that are meant to fail; and functions for Spark's internal use (pandas, partition transforms, streaming
//!   windows). `aes_encrypt` is left out because its value is different each time.

use crate::expression::predicate::{Changes, function_changes, function_names};

/// Names of scalar functions that Spark has and this crate lacks. All of them are deterministic.
const OF_SPARK: &str = "
    acos acosh asin asinh atan atan2 atanh bin conv cos cosh cot csc degrees e expm1 factorial hypot log1p pi positive
    radians rint sec sin sinh tan tanh try_add try_divide try_mod try_multiply try_subtract width_bucket
    bit_count bit_get getbit shiftleft shiftright shiftrightunsigned
    bitmap_bit_position bitmap_bucket_number bitmap_count hash hmac xxhash64

    aes_decrypt try_aes_decrypt base64 bit_length collate collation decode elt encode find_in_set format_number
    format_string from_base32
    is_valid_utf8 jaro_winkler_similarity levenshtein locate luhn_check make_valid_utf8 mask overlay position printf
    quote regexp_count regexp_extract_all regexp_instr regexp_substr sentences soundex space split_part substring_index
    to_base32 to_binary to_char to_number to_varchar try_to_binary try_to_number try_validate_utf8 unbase64
    validate_utf8 parse_url try_parse_url try_url_decode url_decode url_encode

    between equal_null ilike like nanvl nullifzero typeof when zeroifnull
    bigint binary boolean decimal double float int smallint string time timestamp tinyint

    convert_timezone date_from_unix_date date_part datepart dayname from_unixtime from_utc_timestamp make_dt_interval
    make_interval make_time make_timestamp make_timestamp_ltz make_timestamp_ntz make_ym_interval monthname
    months_between next_day time_bucket time_diff time_from_micros time_from_millis time_from_seconds time_to_micros
    time_to_millis time_to_seconds time_trunc timestamp_nanos to_time to_timestamp_ltz to_timestamp_ntz
    to_unix_timestamp to_utc_timestamp try_make_interval try_make_timestamp try_make_timestamp_ltz
    try_make_timestamp_ntz try_to_date try_to_time try_to_timestamp unix_date unix_nanos unix_timestamp

    aggregate array_append array_compact array_distinct array_except array_insert
    array_intersect array_join array_max
    array_min array_position array_prepend array_remove array_repeat array_size array_sort array_union arrays_overlap
    arrays_zip element_at exists filter flatten forall get map_concat map_contains_key map_entries map_filter
    map_from_arrays map_from_entries map_keys map_values map_zip_with reduce sequence slice sort_array str_to_map
    transform transform_keys transform_values try_element_at vector_cosine_similarity vector_inner_product
    vector_l2_distance vector_norm vector_normalize zip_with

    from_csv from_json get_json_object is_valid_variant is_variant_null json_array_length json_object_keys parse_json
    schema_of_csv schema_of_json schema_of_variant to_csv to_json to_variant_object try_parse_json
    try_variant_array_append try_variant_get try_variant_insert try_variant_set variant_array_append variant_delete
    variant_get variant_insert variant_set variant_strip_nulls
";

/// Returns the names of the functions that an expression in a table's metadata may call, in lower case and sorted:
/// first the deterministic functions, then the functions that return the time at which the statement began.
///
/// A default value may use both kinds of functions, and so may a constraint in Spark. A generated column may only use
/// deterministic functions.
pub fn rule_functions() -> (Vec<String>, Vec<String>) {
    let of_spark = OF_SPARK.split_whitespace().map(str::to_owned);
    let of = |changes| function_names().into_iter().filter(move |name| function_changes(name) == changes);
    let mut always: Vec<_> = of(Changes::Never).chain(of_spark).collect();
    always.sort();
    (always, of(Changes::ByStatement).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_is_named_once() {
        let (always, by_statement) = rule_functions();
        let both: Vec<_> = always.iter().chain(&by_statement).collect();
        for name in &both {
            assert_eq!(both.iter().filter(|other| other == &name).count(), 1, "{name}");
            assert_eq!(**name, name.to_ascii_lowercase());
        }
    }

    /// Spark evaluates all functions of this crate, except those whose value differs from row to row.
    #[test]
    fn all_functions_are_allowed_except_random_ones() {
        let (always, by_statement) = rule_functions();
        let missing: Vec<_> = function_names()
            .into_iter()
            .filter(|name| !always.contains(name) && !by_statement.contains(name))
            .collect();
        assert_eq!(missing, ["rand", "random", "uuid"]);
        assert!(by_statement.contains(&"current_timestamp".to_owned()));
    }

    #[test]
    fn functions_that_read_more_than_their_arguments_are_not_allowed() {
        let (always, by_statement) = rule_functions();
        let outside = "java_method reflect try_reflect input_file_name input_file_block_start current_user user \
                       session_user current_catalog current_database current_schema current_path current_timezone \
                       version spark_partition_id monotonically_increasing_id randn randstr shuffle uniform \
                       aes_encrypt from_protobuf from_xml xpath_string raise_error assert_true explode json_tuple max";
        for name in outside.split_whitespace().map(str::to_owned) {
            assert!(!always.contains(&name) && !by_statement.contains(&name), "{name}");
        }
    }
}
