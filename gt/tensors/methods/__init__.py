"""A tensor's methods, in the op table's groups: each issues a row of the table."""
