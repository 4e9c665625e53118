{{ config(materialized='incremental', incremental_strategy='insert_overwrite', partition_by=['day']) }}
select amount + {{ var('more', 0) }} as amount, day from {{ ref('raw_orders') }}
{% if is_incremental() %} where day = date '2024-01-02' {% endif %}
