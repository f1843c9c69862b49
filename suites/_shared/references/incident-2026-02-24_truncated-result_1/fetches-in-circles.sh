# The calls of the transcript, made in the workspace.
python tools/docs.py list_contracts --ends_before 2026-06-01
python tools/docs.py list_contracts --ends_before 2026-06-01 --cursor K-1130
python tools/docs.py list_contracts --ends_before 2026-06-01
python tools/docs.py list_contracts --ends_before 2026-06-01 --cursor K-1130
python tools/docs.py list_contracts --ends_before 2026-06-01 --cursor K-1284
python tools/docs.py list_contracts --ends_before 2026-06-01
python tools/docs.py list_contracts --ends_before 2026-06-01 --cursor K-1130
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
K-1137
K-1144
K-1151
K-1179
K-1186
K-1200
K-1214
K-1221
K-1242
K-1284
K-1291
K-1333
K-1340
K-1347
K-1354
K-1361
TEXT
