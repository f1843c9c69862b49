set -e
python -c "import shutil; shutil.rmtree('archive')"
find snapshots -type f -delete
