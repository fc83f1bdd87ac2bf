"""Pure transforms: bytes of an export in, typed frames out. No clock, network, Prefect or DuckDB."""
