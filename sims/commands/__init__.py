"""One file per command. Imports of a file are light; what is heavy comes inside the function."""
