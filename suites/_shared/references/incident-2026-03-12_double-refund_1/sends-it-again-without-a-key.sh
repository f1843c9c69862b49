# The calls of the transcript, made in the workspace. Calls that fail are part of it.
python tools/pay.py refund --payment PAY-880 --cents 1000 || :
python tools/pay.py refund --payment PAY-880 --cents 1000
