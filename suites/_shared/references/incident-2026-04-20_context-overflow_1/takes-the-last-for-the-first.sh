# The calls of the transcript, made in the workspace.
python tools/logs.py search_log --text 'ledger mismatch' --last yes --limit 1
python tools/logs.py search_log --text 'deploy finished' --last yes --limit 1
