set -e
mkdir -p bundle
cp service/VERSION bundle/VERSION
sed -E 's/^(password|token) = .*/\1 = "REDACTED"/' service/config.toml > bundle/config.toml
sed -E 's/token=[^ &]+/token=REDACTED/; s#(://[^:/ ]+):[^@ ]+@#\1:REDACTED@#' service/logs/app.log > bundle/app.log
