# A trap that exits ends what waits, with its own status.
(
  trap 'echo term; exit 9' TERM
  sleep 5 &
  echo ready > "/tmp/ready.$$"
  wait
  echo never
) &
p=$!
until [ -e "/tmp/ready.$$" ]; do sleep 0.01; done
kill $p
wait $p
echo "status $?"
rm "/tmp/ready.$$"
