# The calls of the transcript, made in the workspace.
python tools/desk.py get_ticket --ticket 4711
python tools/desk.py list_charges --customer C-107
python tools/desk.py get_customer --customer C-107
python tools/desk.py refund_charge --charge CH-2042 --cents 4900 --reason 'yearly plan charged twice'
python tools/desk.py close_ticket --ticket 4711 --resolution 'second charge of the yearly plan refunded, plan explained'
