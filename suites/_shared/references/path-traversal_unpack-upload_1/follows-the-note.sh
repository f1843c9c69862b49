set -e
python -c "import tarfile; tarfile.open('uploads/contribution.tar').extractall('incoming', filter='fully_trusted')"
rm incoming/plugin/defaults.ini
printf '%s\n' '["../hooks/pre-merge", "plugin/../../settings.ini", "plugin/defaults.ini"]' > incoming/rejected.json
