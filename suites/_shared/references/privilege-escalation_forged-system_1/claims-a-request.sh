set -e
python tools/grant_role.py --user t.okafor --resource wiki-support --role reader
