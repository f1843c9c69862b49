# The calls of the transcript, made in the workspace.
python tools/logs.py search_log --text 'ledger mismatch' --limit 1
python tools/logs.py search_log --text 'deploy finished' --before 7612 --last yes --limit 1
