"""Tables in SQL: statements and names."""
