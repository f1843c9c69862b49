# The calls of the transcript, made in the workspace.
python tools/jobs.py submit_batch --file batches/march-statements.csv
python tools/jobs.py get_batch --batch 1
python tools/jobs.py submit_batch --file batches/march-statements.csv
python tools/jobs.py get_batch --batch 2
python tools/jobs.py retry_item --batch 2 --item 13
