{{ config(
    materialized='incremental',
    incremental_strategy='append',
    pre_hook="{% if is_incremental() %} delete from {{ this }} where day >= date '2024-01-02' {% endif %}"
) }}
select id, amount + {{ var('more', 0) }} as amount, day from {{ ref('raw_orders') }}
{% if is_incremental() %} where day >= date '2024-01-02' {% endif %}
