{{ config(materialized='table', partition_by=['customer']) }}
select count(*) as orders, sum(amount) as amount, customer from {{ ref('large_orders') }} group by customer
