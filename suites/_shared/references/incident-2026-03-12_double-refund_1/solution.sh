# The calls of the transcript, made in the workspace. Calls that fail are part of it.
python tools/pay.py list_refunds --payment PAY-880
python tools/pay.py refund --payment PAY-880 --cents 1000 --key broken-crate-pay-880 || :
python tools/pay.py list_refunds --payment PAY-880
