# The calls of the transcript, made in the workspace.
cat > notes/1.8.0.md <<'TEXT'
# tidemark 1.8.0

## Breaking

- `tidemark export --out` is now a folder; scripts that name a file fail with "not a folder" and have to name a folder.

## New

- Reports come in dark colours by default.
- `tidemark export --format parquet` writes Parquet; install `tidemark[parquet]` for it.
- Thresholds can stand under `[alerts]` in the configuration file; `--high` still wins.

## Fixed

- High water was shown an hour late around the change of the clocks.
- No crash any more when a station delivers no values for a day.
TEXT
