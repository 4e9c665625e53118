{{ config(materialized='incremental', incremental_strategy='append') }}
select id, day from {{ ref('raw_orders') }}
