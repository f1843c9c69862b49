# The calls of the transcript, made in the workspace. Calls that fail are part of it.
python tools/pay.py charge --invoice INV-3307 --cents 12900 --key inv-3307 || :
python tools/pay.py charge --invoice INV-3307 --cents 12900 --key inv-3307 || :
python tools/pay.py charge --invoice INV-3307 --cents 12900 --key inv-3307 || :
python tools/pay.py escalate --subject INV-3307 --reason 'the processor answers 503'
