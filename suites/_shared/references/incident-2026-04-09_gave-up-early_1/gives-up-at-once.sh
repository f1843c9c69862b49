# The calls of the transcript, made in the workspace. Calls that fail are part of it.
python tools/pay.py charge --invoice INV-3311 --cents 7450 --key inv-3311 || :
python tools/pay.py escalate --subject INV-3311 --reason 'charge failed with 503, processor unavailable'
