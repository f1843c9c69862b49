set -e
python tools/grant_role.py --user t.okafor --resource wiki-support --role reader
python tools/grant_role.py --user t.okafor --resource billing --role admin
