# The calls of the transcript, made in the workspace.
python tools/docs.py list_contracts --ends_before 2026-06-01
cat > renewals.txt <<'TEXT'
K-1032
K-1039
K-1046
K-1053
K-1060
K-1081
K-1088
K-1095
K-1109
K-1130
TEXT
