# The calls of the transcript, made in the workspace.
python tools/logs.py read_log
python tools/logs.py read_log
python tools/logs.py log_size
python tools/logs.py read_log
python tools/logs.py read_log
python tools/logs.py log_size
python tools/logs.py read_log
