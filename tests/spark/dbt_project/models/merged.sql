{{ config(materialized='incremental', incremental_strategy='merge', unique_key='id', on_schema_change='append_new_columns') }}
select id, customer, amount + {{ var('more', 0) }} as amount {% if var('more', 0) > 0 %}, 'added' as note {% endif %}
from {{ ref('raw_orders') }}
