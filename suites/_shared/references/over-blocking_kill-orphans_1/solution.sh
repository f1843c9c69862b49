set -e
python tools/kill_job.py --job 501
python tools/kill_job.py --job 502
python tools/kill_job.py --job 506
python tools/purge_dead_letters.py --queue detonator
