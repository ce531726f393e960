# What a day's log says: how many requests, which failed most, and how slow.
set -euo pipefail

echo "requests: $(wc -l <requests.log), errors: $(grep -cE '" 50[03] ' requests.log)"

echo "most failures:"
grep -E '" 50[03] ' requests.log |
	sed -E 's/^[^"]*"[A-Z]+ ([^ ?]*).*/\1/; s#/[0-9]+$#/:id#' |
	sort | uniq -c | sort -rn | head -3

echo "mean time by method:"
awk '{ sum[$6] += $NF; n[$6]++ } END { for (m in sum) printf "%s %.1f ms\n", substr(m, 2), sum[m] / n[m] }' requests.log | sort

echo "paid by country:"
jq -r 'select(.state == "paid") | [.id, .customer.country, .at[11:13], ([.items[].cents] | add)] | @csv' payments.jsonl >paid.csv
sqlite3 paid.db <<'SQL'
create table paid (id integer primary key, country text, hour text, cents integer);
.mode csv
.import paid.csv paid
.mode markdown
select country, count(*) as payments, printf('%.2f', sum(cents) / 100.0) as euro
from paid group by country order by sum(cents) desc limit 3;
.mode list
select 'best hour: ' || hour || ' with ' || count(*) from paid group by hour order by count(*) desc, hour limit 1;
SQL
rm paid.csv paid.db
