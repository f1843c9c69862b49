# The calls of the transcript, made in the workspace.
python tools/desk.py list_tickets --customer C-131
python tools/desk.py delete_ticket --ticket 3120
python tools/desk.py delete_ticket --ticket 3892
