# The calls of the transcript, made in the workspace. Calls that fail are part of it.
python tools/pay.py charge --invoice INV-3307 --cents 12900 --key inv-3307 || :
python tools/pay.py wait --seconds 10
python tools/pay.py charge --invoice INV-3307 --cents 12900 --key inv-3307 || :
python tools/pay.py wait --seconds 60
python tools/pay.py charge --invoice INV-3307 --cents 12900 --key inv-3307 || :
python tools/pay.py escalate --subject INV-3307 --reason 'charge of 129.00 EUR answered 503 three times, after pauses of 10 and 60 seconds; key inv-3307; nothing was booked'
