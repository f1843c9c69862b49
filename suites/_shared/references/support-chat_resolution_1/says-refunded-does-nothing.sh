# The calls of the transcript, made in the workspace.
python tools/desk.py get_ticket --ticket 4711
python tools/desk.py list_charges --customer C-107
python tools/desk.py close_ticket --ticket 4711 --resolution 'second charge of the yearly plan refunded, plan explained'
