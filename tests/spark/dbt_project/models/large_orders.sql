{{ config(materialized='ephemeral') }}
select * from {{ ref('raw_orders') }} where amount >= 20
