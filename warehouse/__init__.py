"""DuckDB: models, reference data, checks, and the publishing of a build."""
