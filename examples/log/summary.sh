# What a day's log says: how many requests, which failed most, and how slow.
set -euo pipefail

echo "requests: $(wc -l <requests.log), errors: $(grep -cE '" 50[03] ' requests.log)"

echo "most failures:"
grep -E '" 50[03] ' requests.log |
	sed -E 's/^[^"]*"[A-Z]+ ([^ ?]*).*/\1/; s#/[0-9]+$#/:id#' |
	sort | uniq -c | sort -rn | head -3

echo "mean time by method:"
awk '{ sum[$6] += $NF; n[$6]++ } END { for (m in sum) printf "%s %.1f ms\n", substr(m, 2), sum[m] / n[m] }' requests.log | sort
