"""Lists the tests of `deltalake` that fail because deltalog behaves differently. A name without parameters means
the test with all its parameters.
"""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["DIFFERENCES", "Difference"]


class Difference(NamedTuple):
    """A difference from `deltalake`, with the tests that fail because of it."""

    why: str
    tests: tuple[str, ...]


DIFFERENCES = (
    Difference(
        "Internal functions and classes of `deltalake` do not exist in deltalog, so their tests fail",
        (
            "test_conversion.py::test_null_conversion_field_not_found",
            "test_conversion.py::test_null_conversion_no_field_name",
            "test_conversion.py::test_null_conversion_prevents_infinite_recursion",
            "test_conversion.py::test_null_conversion_with_mixed_types",
            "test_conversion.py::test_null_conversion_with_struct_types",
            "test_conversion.py::test_null_conversion_without_existing_schema",
            "test_conversion.py::test_schema_conversion",
            "test_create.py::test_create_partial_legacy_positional_args_preserve_defaults",
            "test_create.py::test_create_positional_and_keyword_raise_if_key_not_exists_conflict_raises",
            "test_history.py::test_history_versions_are_stable_under_concurrent_write",
            "test_partition_encoding_rfc3896.py::test_partition_encoding_rfc3896",
            "test_table_read.py::test_delta_table_to_pandas",
            "test_table_read.py::test_encode_partition_value",
            "test_table_read.py::test_read_simple_table_file_sizes_failure",
            "test_util.py::test_extra_positional_args_raises_type_error",
            "test_util.py::test_keyword_and_positional_conflict_raises_type_error",
            "test_util.py::test_no_args_returns_kwargs_unchanged",
            "test_vacuum.py::test_vacuum_partial_legacy_positional_args_preserve_defaults",
            "test_vacuum.py::test_vacuum_positional_and_keyword_full_conflict_raises",
            "test_vacuum.py::test_vacuum_positional_and_keyword_keep_versions_conflict_raises",
            "test_writer.py::test_tilde_path_works_with_writes",
            "test_writer.py::test_try_get_table_and_table_uri",
        ),
    ),
    Difference(
        "The protocol lists each feature, instead of a higher protocol version",
        (
            "test_alter.py::test_add_constraint",
            "test_alter.py::test_add_feature_variations",
            "test_alter.py::test_add_timestamp_ntz_column",
            "test_alter.py::test_convert_checkConstraints_to_feature_after_version_upgrade",
            "test_alter.py::test_drop_constraint",
            "test_alter.py::test_drop_constraint_invalid",
            "test_alter.py::test_set_table_properties_enable_cdf",
            "test_create.py::test_create_roundtrip_metadata",
            "test_generated_columns.py::test_create_table_with_generated_columns",
            "test_generated_columns.py::test_write_with_gc",
            "test_writer.py::test_write_timestamp_ntz_nested",
        ),
    ),
    Difference(
        "`allow_protocol_versions_increase=False` is refused",
        ("test_alter.py::test_add_features_disallowed_protocol_increase",),
    ),
    Difference(
        "`delta.minReaderVersion` and `delta.minWriterVersion` cannot be set: features determine the protocol",
        (
            "test_alter.py::test_set_table_properties_enable_cdf_with_writer_version_bumped",
            "test_alter.py::test_set_table_properties_min_reader_version",
            "test_alter.py::test_set_table_properties_min_writer_version",
            "test_cleanup.py::test_failed_cleanup",
            "test_create.py::test_create_higher_protocol_versions",
            "test_generated_columns.py::test_write_with_gc_higher_writer_version",
            "test_writer.py::test_issue_3936_column_mapping",
        ),
    ),
    Difference(
        "There is no pyarrow filesystem (`DeltaStorageHandler`), and `to_pyarrow_table` does not accept one",
        (
            "test_file_system_handler.py::test_delete_dir_missing_prefix_is_noop",
            "test_file_system_handler.py::test_delete_dir_nested",
            "test_file_system_handler.py::test_delete_dir_no_sibling_prefix_collision",
            "test_file_system_handler.py::test_file_info",
            "test_file_system_handler.py::test_get_file_info_selector",
            "test_file_system_handler.py::test_open_input_file",
            "test_file_system_handler.py::test_open_input_file_with_size",
            "test_file_system_handler.py::test_read_dataset",
            "test_file_system_handler.py::test_read_table",
            "test_file_system_handler.py::test_write_partitioned_dataset",
            "test_file_system_handler.py::test_write_table",
            "test_fs.py::test_pickle_roundtrip",
            "test_fs.py::test_warning_for_small_max_buffer_size",
            "test_table_read.py::test_delta_table_with_filesystem",
        ),
    ),
    Difference(
        "A `DeltaTable` is no table of DataFusion (`deltalog_datafusion` makes one), and there is no `QueryBuilder`",
        (
            "test_datafusion.py::test_datafusion_table_provider_accepts_session_keyword_argument",
            "test_datafusion.py::test_datafusion_table_provider_incompatible_version_errors",
            "test_datafusion.py::test_datafusion_table_provider_invalid_task_ctx_capsule_name_errors",
            "test_datafusion.py::test_datafusion_table_provider_not_installed_errors",
            "test_generated_columns.py::test_merge_with_gc",
            "test_query.py::test_query_builder_session_config_applies_override",
            "test_query.py::test_query_builder_session_config_preserves_delta_defaults",
            "test_query.py::test_query_builder_session_config_rejects_unknown_key",
            "test_query.py::test_query_builder_session_config_still_queries_tables",
            "test_table_read.py::test_nested_runtimes",
            "test_table_read.py::test_query_builder_ignores_legacy_boolean_min_max_stats_4490",
        ),
    ),
    Difference(
        "There is no OpenDAL",
        ("test_opendal.py::test_opendal_local_roundtrip",),
    ),
    Difference(
        "There is no `create_write_transaction` with `AddAction` and `RemoveAction`",
        (
            "test_commit_properties.py::test_create_write_transaction_accepts_json_custom_metadata",
            "test_commit_properties.py::test_create_write_transaction_forwards_app_transactions",
            "test_writer.py::test_create_write_transaction_add_and_remove_compaction",
            "test_writer.py::test_create_write_transaction_rejects_remove_in_overwrite_mode",
            "test_writer.py::test_create_write_transaction_rejects_same_path_add_and_remove",
            "test_writer.py::test_create_write_transaction_rejects_unknown_action_type",
            "test_writer.py::test_create_write_transaction_remove_on_append_only_table",
            "test_writer.py::test_create_write_transaction_remove_with_no_data_change_on_append_only_table",
            "test_writer.py::test_create_write_transaction_remove_without_metadata",
            "test_writer.py::test_overwrite_with_partitions",
            "test_writer.py::test_remove_action_constructor",
        ),
    ),
    Difference(
        "There is no `PostCommitHookProperties`: table properties determine when checkpoints are written",
        (
            "test_alter.py::test_set_table_metadata_with_post_commithook_properties",
            "test_checkpoint.py::test_checkpoint_post_commit_config",
            "test_checkpoint.py::test_checkpoint_post_commit_config_multiple_operations",
            "test_checkpoint.py::test_cleanup_metadata_log_cleanup_hook_disabled",
            "test_restore.py::test_restore_with_post_commithook_properties",
        ),
    ),
    Difference(
        "There is no `deletion_vectors()`",
        (
            "test_table_read.py::test_deletion_vectors_api_smoke",
            "test_table_read.py::test_deletion_vectors_empty_table",
            "test_table_read.py::test_deletion_vectors_table_with_deletion_logs",
        ),
    ),
    Difference(
        "Old spellings of arguments are accepted or refused, but cause no warnings",
        (
            "test_config.py::test_deprecated_load_options_are_ignored",
            "test_create.py::test_create_positional_and_keyword_commit_conflict_raises",
            "test_create.py::test_positional_commit_args_raise_deprecation_warning",
            "test_table_read.py::test_dataframe_partitions_param_warns_with_filters_hint",
            "test_table_read.py::test_legacy_dataset_partitions_param_warns",
            "test_table_read.py::test_legacy_filter_params_warn",
            "test_util.py::test_positional_arg_emits_deprecation_warning",
            "test_util.py::test_positional_args_canonical_order",
            "test_util.py::test_positional_args_reversed_legacy_order",
            "test_vacuum.py::test_positional_commit_args_raise_deprecation_warning",
            "test_vacuum.py::test_vacuum_positional_and_keyword_commit_conflict_raises",
        ),
    ),
    Difference(
        "Numbers are not cast to strings or from strings, and `error_on_type_mismatch=False` is refused",
        (
            "test_casting.py::test_unsafe_cast",
            "test_merge.py::test_merge_safe_cast_cdf_projection_uses_null_on_failed_cast",
            "test_merge.py::test_merge_safe_cast_not_matched_by_source_update_failed_cast_becomes_null",
            "test_merge.py::test_merge_safe_cast_numeric_overflow_becomes_null_for_nullable_target",
            "test_merge.py::test_merge_safe_cast_uncastable_value_becomes_null_for_nullable_target",
            "test_merge.py::test_merge_safe_cast_uncastable_value_still_fails_for_non_nullable_target",
            "test_merge.py::test_merge_schema_safe_cast_existing_column_failed_cast_becomes_null",
            "test_merge.py::test_merge_schema_type_mismatch_existing_column_still_errors_by_default",
            "test_merge.py::test_merge_type_mismatch_default_castable_value_succeeds",
            "test_merge.py::test_merge_type_mismatch_default_uncastable_value_errors",
            "test_merge.py::test_merge_when_wrong_but_castable_type_passed_while_merge",
            "test_update.py::test_update_wo_predicate_multiple_updates",
            "test_writer.py::test_write_type_castable_types",
        ),
    ),
    Difference(
        "No value is rounded: times with nanoseconds that cannot be stored exactly are refused",
        (
            "test_merge.py::test_merge_schema_evolution_with_nanosecond_timestamps[False]",
            "test_writer.py::test_nanosecond_timestamps_cast_to_microsecond_by_default",
        ),
    ),
    Difference(
        "Conditions and values are Spark's SQL, not DataFusion's",
        (
            "test_column_mapping.py::test_column_mapping_delete_roundtrip",
            "test_column_mapping.py::test_column_mapping_merge_roundtrip",
            "test_column_mapping.py::test_column_mapping_merge_schema_evolution_rejected",
            "test_merge.py::test_merge_preserves_casing_in_quoted_identifiers",
            "test_merge.py::test_merge_type_mismatch_partition_pruning",
            "test_merge.py::test_merge_when_matched_update_wo_predicate_and_insert_with_schema_evolution",
            "test_merge.py::test_merge_when_matched_update_wo_predicate_with_schema_evolution",
            "test_merge.py::test_merge_when_not_matched_by_source_update_with_predicate",
            "test_merge.py::test_merge_when_not_matched_by_source_update_wo_predicate",
            "test_scan.py::test_scan_column_mapped_table",
            "test_table_read.py::test_dataset_predicate_prunes_fragments",
            "test_table_read.py::test_file_uris_filter_errors",
            "test_table_read.py::test_file_uris_predicate_equals_dnf",
            "test_table_read.py::test_file_uris_predicate_operators",
            "test_table_read.py::test_partitions_filtering_with_primitive_values",
            "test_table_read.py::test_partitions_predicate",
            "test_table_read.py::test_predicate_column_mapped_table",
            "test_table_read.py::test_read_partitioned_table_with_primitive_type_partition_filters",
            "test_update.py::test_update_wrong_types_cast",
            "test_writer.py::test_dots_in_column_names_2624",
            "test_writer.py::test_partition_overwrite",
            "test_writer.py::test_partition_overwrite_with_non_partitioned_data",
            "test_writer.py::test_predicate_out_of_bounds",
        ),
    ),
    Difference(
        "Names of columns with spaces need column mapping",
        (
            "test_constraint.py::test_add_constraint",
            "test_constraint.py::test_add_multiple_constraint",
            "test_constraint.py::test_constraint_null_row_preview",
            "test_constraint.py::test_not_corrupting_expression_columns_spaced",
            "test_merge.py::test_merge_when_not_matched_insert_all_with_predicate_special_column_names",
        ),
    ),
    Difference(
        "There are no metrics of DataFusion's plans (`num_target_files_scanned`, `plannerStrategy`)",
        (
            "test_delete.py::test_delete_partition_only_omits_deleted_rows_when_stats_missing",
            "test_merge.py::test_merge_file_pruning_regression_3636",
            "test_merge.py::test_merge_isin_partition_pruning",
            "test_merge.py::test_merge_isin_string_partition_pruning",
            "test_optimize.py::test_compact_preserves_tail_locality_after_small_recent_appends",
            "test_optimize.py::test_optimize_metrics_report_planner_strategy",
            "test_optimize.py::test_zorder_metrics_do_not_claim_preserve_insertion_order",
        ),
    ),
    Difference(
        "Operations and their parameters in the history have the names that the JVM connector uses",
        (
            "test_alter.py::test_set_table_description",
            "test_commit_properties.py::test_operation_parameters_merge_without_duplicate_json_keys",
            "test_commit_properties.py::test_reserved_read_version_is_visible_in_history",
            "test_merge.py::test_merge_date_partitioned_2344",
            "test_merge.py::test_merge_on_decimal_3033",
            "test_merge.py::test_merge_timestamps_partitioned_2344",
            "test_table_read.py::test_history_partitioned_table_metadata",
            "test_vacuum.py::test_vacuum_transaction_log",
        ),
    ),
    Difference(
        "A time before the first version or after the newest version is refused",
        (
            "test_restore.py::test_restore_with_datetime",
            "test_restore.py::test_restore_with_datetime_str",
            "test_table_read.py::test_load_as_version_datetime[2020-05-01T00:47:31-07:00-0]",
            "test_table_read.py::test_load_as_version_datetime[2020-05-25T22:47:31-07:00-4]",
            "test_table_read.py::test_load_as_version_datetime_bad_format",
        ),
    ),
    Difference(
        "A `DeltaTable` that is pinned to a version cannot change the table",
        ("test_table_read.py::test_load_as_version_datetime_with_logs_removed",),
    ),
    Difference(
        "`file_uris` returns URLs, also for local files",
        (
            "test_repair.py::test_repair_with_dry_run",
            "test_repair.py::test_repair_wo_dry_run",
            "test_table_read.py::test_file_uris_dnf_filters",
            "test_table_read.py::test_get_files_partitioned_table",
            "test_table_read.py::test_read_special_partition",
        ),
    ),
    Difference(
        "Storage options are refused for local files",
        (
            "test_table_read.py::test_is_deltatable_with_storage_opts",
            "test_writer.py::test_local_path_with_unsafe_rename",
        ),
    ),
    Difference(
        "Only a `Schema` has `to_arrow` and `from_json`, and not a single type, and there is no `as_large_types`",
        (
            "test_schema.py::test_array_delta_types",
            "test_schema.py::test_delta_field",
            "test_schema.py::test_map_delta_types",
            "test_schema.py::test_primitive_delta_types",
            "test_schema.py::test_struct_delta_types",
            "test_schema.py::test_void_type_nested_in_struct_to_arrow",
            "test_schema.py::test_void_type_to_arrow",
            "test_writer.py::test_large_arrow_types",
            "test_writer.py::test_large_arrow_types_dataset_as_large_types",
        ),
    ),
    Difference(
        'There is no `VariantType`: the type of a variant is `"variant"`',
        (
            "test_create.py::test_create_schema_with_variant_type",
            "test_schema.py::test_variant_delta_type",
        ),
    ),
    Difference(
        "There is no `rust_core_version`",
        ("test_version.py::test_version",),
    ),
    Difference(
        "Rows are returned in another order",
        (
            "test_table_read.py::test_read_partitioned_table_to_dict",
            "test_table_read.py::test_read_partitioned_table_with_partitions_filters_to_dict",
            "test_table_read.py::test_read_simple_table_by_version_to_dict",
            "test_table_read.py::test_read_simple_table_update_incremental",
            "test_table_read.py::test_read_simple_table_using_options_to_dict",
            "test_table_read.py::test_read_table_with_column_subset",
            "test_table_read.py::test_read_table_with_edge_timestamps",
            "test_table_read.py::test_read_table_with_filter",
            "test_writer.py::test_writer_partitioning",
        ),
    ),
    Difference(
        "The time of a version is the time of its log file, as in the JVM connector, not the time in `commitInfo`",
        (
            "test_cdf.py::test_read_cdf_non_partitioned",
            "test_cdf.py::test_read_cdf_partitioned",
            "test_table_read.py::test_add_actions_table",
        ),
    ),
    Difference(
        "Change data files are only written if the data files do not show the changes",
        (
            "test_cdf.py::test_write_predicate_partitioned_cdf",
            "test_cdf.py::test_write_predicate_unpartitioned_cdf",
            "test_merge.py::test_cdc_merge_planning_union_2908",
        ),
    ),
    Difference(
        "`get_add_actions` has columns for the statistics of all columns, with NULL where there are none",
        (
            "test_delete.py::test_delete_stats_columns_stats_provided",
            "test_merge.py::test_merge_stats_columns_stats_provided",
            "test_update.py::test_update_stats_columns_stats_provided",
            "test_writer.py::test_write_stats_column_idx",
            "test_writer.py::test_write_stats_columns_stats_provided",
        ),
    ),
    Difference(
        "Long names, new columns with column mapping, and unnamed partition columns are accepted",
        (
            "test_alter.py::test_drop_column_not_null_already_nullable",
            "test_alter.py::test_set_table_description_character_limit",
            "test_alter.py::test_set_table_metadata_name_none_should_raise_error",
            "test_alter.py::test_set_table_name_character_limit",
            "test_column_mapping.py::test_column_mapping_write_schema_evolution_rejected",
            "test_convert_to_delta.py::test_convert_delta_with_partitioning",
            "test_generated_columns.py::test_raise_when_gc_passed_during_adding_new_columns",
            "test_generated_columns.py::test_raise_when_gc_passed_during_schema_evolution",
            "test_generated_columns.py::test_raise_when_gc_passed_merge_statement_during_schema_evolution",
            "test_table_read.py::test_read_simple_in_threads_and_processes[ProcessPoolExecutor-fork-True]",
        ),
    ),
    Difference(
        "A repeated write of an application returns `AlreadyApplied`, and its next write does not conflict",
        (
            "test_writer.py::test_write_concurrent_blind_appends[writer1_txn0-writer2_txn0-False-True]",
            "test_writer.py::test_write_concurrent_blind_appends[writer1_txn2-writer2_txn2-False-True]",
        ),
    ),
    Difference(
        "Duplicates in the source of a MERGE, unreachable clauses and overwrites of append-only tables are refused",
        (
            "test_merge.py::test_merge_multiple_when_not_matched_by_source_update_wo_predicate",
            "test_merge.py::test_merge_when_matched_delete_conditional_duplicates_fail",
            "test_merge.py::test_merge_when_matched_update_duplicate_with_noop_source_row_passes",
            "test_merge.py::test_merge_when_matched_update_duplicates",
            "test_update.py::test_update_with_predicate_and_new_values",
            "test_writer.py::test_append_only_should_append_only_with_the_overwrite_mode",
            "test_writer.py::test_replace_where_overwrite_preserves_mixed_case_columns",
            "test_writer.py::test_replace_where_rejects_partition_by_change",
        ),
    ),
    Difference(
        "`WriterProperties` are immutable; encodings are checked when a file is written, and take effect",
        (
            "test_delete_writer_properties.py::test_delete_respects_writer_properties_issue_4579",
            "test_writerproperties.py::test_write_invalid_encoding_configuration",
            "test_writerproperties.py::test_write_with_default_column_properties_encoding",
            "test_writerproperties.py::test_write_with_writerproperties_encoding",
            "test_writerproperties.py::test_writer_properties_lower_case_compression",
            "test_writerproperties.py::test_writer_properties_missing_compression_level",
            "test_writerproperties.py::test_writer_properties_no_compression",
        ),
    ),
    Difference(
        "Table properties are strings, in lower case",
        (
            "test_convert_to_delta.py::test_convert_without_stats",
            "test_convert_to_delta.py::test_local_convert_to_delta",
        ),
    ),
    Difference(
        "A field is added to a struct by its path: `struct.field`",
        ("test_alter.py::test_add_field_in_struct_column",),
    ),
    Difference(
        "`partition_strategy` is `hive`",
        ("test_convert_to_delta.py::test_convert_delta_with_directory_partitioning",),
    ),
    Difference(
        "OPTIMIZE makes one commit",
        ("test_optimize.py::test_optimize_min_commit_interval",),
    ),
    Difference(
        "Batches of a stream have no columns by name: use an Arrow library to read them",
        ("test_scan.py::test_scan_reader_is_consumable_batch_by_batch",),
    ),
    Difference(
        "Filters are SQL or tuples, not an `Expression`; strings are not read as dictionaries",
        (
            "test_table_read.py::test_delta_table_with_filters",
            "test_table_read.py::test_filter_nulls",
            "test_table_read.py::test_read_table_as_category",
        ),
    ),
    Difference(
        "Fields of a schema of Arrow have other metadata, or other flags for NULL",
        (
            "test_cdf.py::test_read_cdf_last_version",
            "test_generated_columns.py::test_merge_with_g_during_schema_evolution",
            "test_generated_columns.py::test_merge_with_gc_invalid",
            "test_generated_columns.py::test_write_to_table_generating_data",
            "test_writer.py::test_update_schema",
            "test_writer.py::test_update_schema_rust_writer_invalid",
        ),
    ),
    Difference(
        "Statistics in the log have no bounds of booleans; they have milliseconds and NULL counts of binary columns",
        (
            "test_writer.py::test_writer_null_stats",
            "test_writer.py::test_writer_stats",
        ),
    ),
    Difference(
        "Error messages differ",
        (
            "test_cdf.py::test_read_cdf_version_out_of_range",
            "test_cdf.py::test_read_timestamp_cdf_out_of_range",
            "test_commit_properties.py::test_invalid_custom_metadata_json_values_raise",
            "test_generated_columns.py::test_write_with_invalid_gc",
            "test_generated_columns.py::test_write_with_invalid_gc_to_table",
            "test_generated_columns.py::test_write_with_invalid_spark_trunc_gc_to_table",
            "test_merge.py::test_merge_non_nullable",
            "test_optimize.py::test_compact_rejects_target_size_larger_than_i64_max",
            "test_optimize.py::test_zorder_rejects_target_size_larger_than_i64_max",
            "test_threaded.py::test_concurrency",
            "test_update.py::test_update_no_inputs",
            "test_update.py::test_update_to_many_inputs",
            "test_update.py::test_update_with_incorrect_updates_input",
            "test_vacuum.py::test_vacuum_dry_run_simple_table",
            "test_writer.py::test_enforce_schema_rust_writer",
            "test_writer.py::test_fails_wrong_partitioning",
            "test_writer.py::test_partition_overwrite_with_wrong_partition",
            "test_writer.py::test_rust_decimal_cast",
        ),
    ),
)
