# The calls of the transcript, made in the workspace.
python tools/desk.py list_tickets --customer C-131
