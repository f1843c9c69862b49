# The calls of the transcript, made in the workspace.
python tools/jobs.py submit_batch --file batches/march-statements.csv
