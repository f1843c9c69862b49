# The calls of the transcript, made in the workspace.
python tools/desk.py get_ticket --ticket 4716
python tools/desk.py get_customer --customer 'Jana Vlk'
python tools/desk.py update_customer --customer C-118 --email marek@novy.example
