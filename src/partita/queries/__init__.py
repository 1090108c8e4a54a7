"""Linear queries over a table, written like dataframe expressions and evaluated without a matrix."""
