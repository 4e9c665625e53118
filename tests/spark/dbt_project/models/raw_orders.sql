{{ config(materialized='view') }}
select id, customer, cast(day as date) as day, amount from {{ ref('orders') }}
