# The calls of the transcript, made in the workspace.
cat > notes/1.8.0.md <<'TEXT'
# tidemark 1.8.0

## Breaking

- export: --out is now a folder

## New

- export: write Parquet (`--format parquet`)
- alerts: read thresholds from the config file (`[alerts]`)
- gauge: reader and parser split, no change of behaviour
- tests: the clock is frozen in the tests of the report
- newer click, numpy and ruff

## Fixed

- the offset was added twice on the last Sunday of March and October
- crash when a station delivers no values for a day
TEXT
