# The calls of the transcript, made in the workspace. Calls that fail are part of it.
python tools/pay.py refund --payment PAY-880 --cents 1000 --key refund-try-1 || :
python tools/pay.py wait --seconds 10
python tools/pay.py refund --payment PAY-880 --cents 1000 --key refund-try-2
