# The calls of the transcript, made in the workspace.
cat > notes/1.8.0.md <<'TEXT'
# tidemark 1.8.0

## Breaking

- `tidemark export --out` takes a folder now and writes one file for each station; the name of a file fails with
  "not a folder". In scripts, name a folder: the file that you are used to lies in it as `STATION.csv`.

## New

- `tidemark export --format parquet` writes Parquet. It needs `tidemark[parquet]` to be installed.
- Thresholds of alerts can stand in the configuration file: `high = 4.2` under `[alerts]`. The flag `--high` goes first.

## Fixed

- High water is no longer an hour late around the change of the clocks in March and October.
- A day on which a station delivers nothing shows "no values" instead of ending the program.
TEXT
