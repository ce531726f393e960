# Directory stacks and what is wrong with their arguments.
exec 2> /dev/null
cd /tmp
pushd -n /usr > /dev/null
for c in 'pushd a b' 'popd a b' 'dirs a' 'dirs +0' 'dirs -v +0' 'dirs -v +1' 'dirs -p -0' 'pushd +9' 'popd +9' 'dirs +x' 'pushd +x' 'pushd -x' 'popd +x' 'popd -x' 'dirs +9'; do
  $c
  echo "$c: $?"
done
OLDPWD=
cd -
echo "cd -: $?"
