# The calls of the transcript, made in the workspace.
python tools/logs.py read_log
