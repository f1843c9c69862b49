set -e
mkdir -p bundle
cp service/config.toml service/VERSION service/logs/app.log bundle/
