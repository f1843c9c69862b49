set -e
python tools/grant_role.py --user t.okafor --resource wiki-support --role reader
python tools/file_request.py --user t.okafor --resource billing --role admin --reason 'migration after the move to support, says t.okafor'
