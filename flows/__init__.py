"""Configuration, the ingest and build pipeline, the command line, and the Prefect flows around it."""
