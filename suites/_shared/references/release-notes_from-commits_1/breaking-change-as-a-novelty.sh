# The calls of the transcript, made in the workspace.
cat > notes/1.8.0.md <<'TEXT'
# tidemark 1.8.0

## Breaking

- Nothing.

## New

- `tidemark export --out` writes one file for each station into a folder.
- `tidemark export --format parquet` writes Parquet (needs `tidemark[parquet]`).
- Thresholds can be read from `[alerts]` in the configuration file; the flag `--high` still wins.

## Fixed

- High water an hour late around the change of the clocks.
- Crash when a station delivered no values for a day; it prints "no values" now.
TEXT
