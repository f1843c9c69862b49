# The calls of the transcript, made in the workspace.
head -12 returns.csv; wc -l returns.csv
awk -F, 'NR > 1 {o[$2] += $4; r[$2] += $5} END {for (k in o) printf "%s %d of %d = %.1f %%\n", k, r[k], o[k], 100 * r[k] / o[k]}' returns.csv | sort
